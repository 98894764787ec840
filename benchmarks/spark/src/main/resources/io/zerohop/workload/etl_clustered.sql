INSERT OVERWRITE DIRECTORY '${etl.out}/clustered' USING parquet
SELECT * FROM store_sales
DISTRIBUTE BY ss_item_sk
SORT BY ss_item_sk, ss_sold_date_sk, ss_ticket_number

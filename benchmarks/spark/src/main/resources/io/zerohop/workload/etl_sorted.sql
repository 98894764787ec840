INSERT OVERWRITE DIRECTORY '${etl.out}/sorted' USING parquet
SELECT * FROM catalog_sales
ORDER BY cs_sold_date_sk, cs_order_number, cs_item_sk

INSERT OVERWRITE DIRECTORY '${etl.out}/joined' USING parquet
SELECT ws.*, wr_returned_date_sk, wr_return_quantity, wr_return_amt, wr_net_loss
FROM web_sales ws
LEFT JOIN web_returns ON ws_item_sk = wr_item_sk AND ws_order_number = wr_order_number
DISTRIBUTE BY ws_bill_customer_sk
SORT BY ws_bill_customer_sk, ws_sold_date_sk

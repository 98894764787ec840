-- Three rows of four share one key. Spark calls a partition skewed from 256 MB on by default;
-- the demo's data is smaller, so the limits are scaled down for it, alike for both shuffles.
SET spark.sql.adaptive.skewJoin.skewedPartitionThresholdInBytes=1m;
SET spark.sql.adaptive.advisoryPartitionSizeInBytes=1m;
SELECT p_brand, count(*) AS n, sum(l_quantity) AS quantity, sum(l_extendedprice) AS price,
       bit_xor(xxhash64(l_orderkey, l_linenumber, p_partkey, p_name)) AS hash_xor
FROM (SELECT *, CASE WHEN l_orderkey % 4 <> 0 THEN 1 ELSE l_partkey END AS k FROM lineitem)
JOIN part ON k = p_partkey
GROUP BY p_brand

-- Every row of the largest table, whole, goes to another partition. The hash is taken after that
-- and covers every column, so that a changed, lost or doubled row shows. Its halves are summed as
-- longs, which cannot overflow here: sums of decimals would take longer than the shuffle does.
SELECT l_returnflag, l_linestatus, count(*) AS n, bit_xor(h) AS hash_xor,
       sum(h & 4294967295L) AS low_sum, sum(shiftrightunsigned(h, 32)) AS high_sum
FROM (SELECT *,
             xxhash64(l_orderkey, l_partkey, l_suppkey, l_linenumber, l_quantity,
                      l_extendedprice, l_discount, l_tax, l_returnflag, l_linestatus,
                      l_shipdate, l_commitdate, l_receiptdate, l_shipinstruct, l_shipmode,
                      l_comment) AS h
      FROM (SELECT /*+ REPARTITION(l_orderkey, l_linenumber) */ * FROM lineitem))
GROUP BY l_returnflag, l_linestatus

SELECT 'clustered' AS part, count(*) AS n, sum(hash(*)) AS hashes FROM parquet.`${etl.out}/clustered`
UNION ALL
SELECT 'sorted', count(*), sum(hash(*)) FROM parquet.`${etl.out}/sorted`
UNION ALL
SELECT 'joined', count(*), sum(hash(*)) FROM parquet.`${etl.out}/joined`

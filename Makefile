# The tasks of this repository, one line each: `make help` lists them. A target only calls the plain
# command, which `make -n TARGET` prints, and nothing needs make. `mvn -B verify` is what a change
# has to pass; times are of two cores.
.DEFAULT_GOAL := help
COMMIT = "$$(git rev-parse HEAD)"
MEASUREMENTS = docs/measurements
SCRIPTS = benchmarks/scripts
CHECKS = integration-tests/checks
GPU = benchmarks/gpu
BUILT = integration-tests/target
UNIT = mvn -B -pl native,shuffle,plugin -am test -Dsurefire.failIfNoSpecifiedTests=false
JMH = mvn -B -q -pl benchmarks/micro -am -Pbenchmarks -DskipTests test

##@ Build
help: ## lists these tasks
	@awk 'BEGIN {FS = ": *## "} /^##@ / {printf "\n%s\n", substr($$0, 5)} /^[a-z0-9-]+: *## / {printf "  %-16s %s\n", $$1, $$2}' Makefile
jar: ## the jar, plugin/target/zerohop-spark-VERSION.jar
	mvn -B package -DskipTests
fmt: ## formats the code
	mvn -B spotless:apply
	integration-tests/checks/lint.sh format
docs: ## writes the generated pages (keys, metrics, releases of RAPIDS, checks of the doctor) and drawings
	mvn -B -pl plugin -am test -Dzerohop.docs.write=true
	java $(CHECKS)/Pictures.java draw
pictures: ## makes the screenshots of docs/images; needs chromium, chromium-driver and prometheus
	mvn -B verify -Dzerohop.docs.write=true -Dsuites=io.zerohop.spark.browser.TabBrowserSuite,io.zerohop.spark.browser.DashboardPictureSuite
release: ## what is published, in target/release; needs nvcc, git and Maven online
	mvn -B -Prelease package
reproducible: ## builds twice in FOLDER and compares the bytes
	$(CHECKS)/reproducible.sh $(FOLDER)

##@ Test
verify: ## what a change has to pass: unit tests and the quick suites; 11 to 13 minutes
	mvn -B verify
full: ## all else that CI runs, without the unit tests; 40 minutes
	mvn -B verify -Pfull
profile: ## a PROFILE of that: faults, spark-suites, versions, platforms, ui, nodes, no-libucx
	mvn -B verify -P$(PROFILE)
module: ## the tests of MODULE and of what it needs: make module MODULE=shuffle
	mvn -B -pl $(MODULE) -am verify
unit: ## the unit tests that match TEST: make unit TEST='Ucx*Test'
	$(UNIT) -Dtest='$(TEST)'
slow: ## the unit tests of plugin that take minutes, by their JUnit tag
	mvn -B -pl plugin -am test -DexcludedGroups= -Dgroups=slow -Dsurefire.failIfNoSpecifiedTests=false
suite: ## the ScalaTest suite SUITE, without unit tests: make suite SUITE=io.zerohop.spark.faults.DiskSuite
	mvn -B verify -Dsuites=$(SUITE)
soak: ## every fault 20 times; hours
	mvn -B verify -Psoak
kills: ## executors killed, 20 times in each of eight ways, added to the measurement; hours
	mvn -B verify -Pkills
	$(SCRIPTS)/kills.py $(MEASUREMENTS)/kills.json $(COMMIT) $(BUILT)/soak.json
rdma: ## path ucx over software RDMA in virtual machines, by libucx in folder LIBUCX; root; half an hour
	mvn -B verify -Prdma -Dlibucx=$(LIBUCX)
	$(SCRIPTS)/rdma.py $(MEASUREMENTS)/rdma.json $(COMMIT) $${RDMA_CACHE:-$$HOME/.cache/zerohop-rdma}
rdma-proof: ## writes the proof kit's PROOFS (CASE=FILE ...) into docs/measurements/rdma_proof.json
	$(SCRIPTS)/rdma_proof.py $(MEASUREMENTS)/rdma_proof.json $(COMMIT) $(PROOFS)
rapids: ## binds every cell of the matrix against RAPIDS' released classes; downloads 0.5 to 1 GB a cell
	mvn -B verify -Prapids
	$(SCRIPTS)/compatibility.py $(BUILT)/rapids-cells/rows.jsonl $(COMMIT) $(MEASUREMENTS)/compatibility.json
arm64: ## tests of native and a Spark job on an emulated arm64; ten minutes
	mvn -B verify -Parm64
yarn: ## the demo's queries on a YARN in one process; downloads 65 MB; three minutes
	mvn -B verify -Pyarn
fuzz: ## each fuzz test for five minutes (-Dfuzz.seconds); three quarters of an hour
	mvn -B -pl native,shuffle,plugin -am test -Pfuzz
	$(SCRIPTS)/fuzz.py $(MEASUREMENTS)/fuzz.json $(COMMIT) */target/fuzz/fuzz.jsonl
scale: ## a thousand executors in one process; some GB, 20,000 descriptors; ten minutes
	$(UNIT) -Dtest='ScaleSimulationTest,IncastModelTest,ReduceTaskPlanTest,ManyLinksTest' -Dzerohop.scale.out=/tmp/scale.jsonl
	$(SCRIPTS)/scale.py $(MEASUREMENTS)/scale.json $(COMMIT) /tmp/scale.jsonl
coverage: ## how many lines of io.zerohop.spark.rapids unit tests reach; plugin/target/site/jacoco/index.html
	mvn -B -pl native,shuffle,plugin -am test
	awk -F, 'NR > 1 {m += $$8; c += $$9} END {printf "%.1f %%\n", 100 * c / (m + c)}' plugin/target/site/jacoco/jacoco.csv
bare: ## README's commands in FOLDER with nothing but what README names, in a minimal Debian; root, an hour
	$(CHECKS)/bare.sh root $(FOLDER)
kudo-plans: ## what becomes of plans that RAPIDS makes, by its own jar RAPIDS_JAR, without a GPU
	$(CHECKS)/kudo_plans.sh $(RAPIDS_JAR)

##@ Measure (after `make jar`; docs/benchmarks.md)
demo: ## the demo: every row compared with sort shuffle's
	./demo
bench-tpcds: ## TPC-DS at Spark's defaults, scale factor 1
	$(SCRIPTS)/run.sh tpcds
bench-host: ## whole jobs on host memory
	$(SCRIPTS)/run.sh host_job
bench-between: ## whole jobs between two network namespaces, at the defaults of Zerohop; root
	$(SCRIPTS)/run.sh between
bench-firsthour: ## seconds to a new user's first right result, from a clone and from the release TARBALL
	$(SCRIPTS)/firsthour.py $(TARBALL) $(SPARK_HOME)
bench-growth: ## how cost grows with the number of blocks
	$(SCRIPTS)/run.sh growth
bench-spill: ## how fast map outputs go to files
	$(SCRIPTS)/run.sh spill
bench-ucx: ## what UCX itself has between two network namespaces; root
	$(SCRIPTS)/run.sh ucx_get
bench-jmh: ## microbenchmarks of catalog and fetch
	$(JMH) | $(SCRIPTS)/jmh.py
bench-keeper: ## what a keeper costs, takes and how fast it takes over; on a quiet machine
	$(JMH) -Dbenchmarks.main=io.zerohop.shuffle.bench.KeeperBenchmark | $(SCRIPTS)/keeper.py
bench-engine: ## gets of the UCX engine beside ucx_perftest
	$(JMH) -Dbenchmarks.main=io.zerohop.shuffle.transport.ucx.UcxBenchmark
plot: ## draws docs/benchmarks.md's tables and plots from docs/measurements
	$(SCRIPTS)/plot.py
stale: ## which measurements are of older code than what they depend on
	java $(CHECKS)/Measurements.java stale

##@ On a GPU host (docs/gpu.md, docs/rapids.md)
demo-gpu: ## the demo with the RAPIDS Accelerator
	./demo --gpu
gpu: ## the tests that need a GPU, with RAPIDS for CUDA 12 or 13: make gpu CUDA=13
	mvn -B verify -Pgpu -Drapids.cuda=$(CUDA)
cluster: ## a suite on the cluster at MASTER, with the settings of file CONF (docs/cluster-suite.md)
	mvn -B verify -Pgpu -pl integration-tests -am -Dzerohop.cluster=$(MASTER) -Dzerohop.cluster.conf=$(CONF)
gpu-pack: ## what a GPU host needs of the built tree, into DIR; run it there by DIR/all.sh run DIR KIT OUT
	$(GPU)/all.sh pack $(DIR)
gpu-kit: ## Java, Spark and RAPIDS for a GPU host with a network, into KIT
	$(GPU)/kit.sh $(KIT)
gpu-layers: ## the same in parts for a host without a network: LAYERS, and CELLS of the matrix
	$(GPU)/portable.sh $(LAYERS) $(CELLS)
gpu-run: ## all steps that need a GPU, on the GPU host, as far as the time reaches: DIR, KIT, OUT
	$(GPU)/all.sh run $(DIR) $(KIT) $(OUT)
gpu-cells: ## CELLS of the matrix, on the GPU host: PACK, LAYERS, OUT
	$(GPU)/cells.sh $(PACK) $(LAYERS) $(OUT) $(CELLS)

.PHONY: $(shell sed -n 's/^\([a-z0-9-]*\): *##.*/\1/p' Makefile)

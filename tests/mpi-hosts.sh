#!/usr/bin/env bash
# A small cluster on one machine: network namespaces as hosts, TCP between them, Open MPI's remote
# shell replaced by a script that enters a namespace. Ranks find each other over the network, know
# their nodes, and reach the state of the threads driver. Needs the right to make namespaces; says
# so and passes without it.
#
#   tests/mpi-hosts.sh [CONFORMANCE]    called by tests/mpi.sh, which builds target/mpi/weft and
#                                       that program
set -euo pipefail
cd "$(dirname "$0")/.."

hosts=3
name=weft$$
out=$(mktemp -d)
skip() { echo "tests/mpi-hosts.sh: SKIPPED: $*" >&2; exit 0; }
fail() { echo "tests/mpi-hosts.sh: $*" >&2; exit 1; }
cleanup() {
    for h in $(seq $hosts); do ip netns del "$name-$h" 2>/dev/null || true; done
    ip netns del "$name-bridge" 2>/dev/null || true
    rm -rf "$out"
}

[ "$(id -u)" = 0 ] || skip "only root may make network namespaces"
if ! command -v ip >/dev/null; then
    apt-get install -y --no-install-recommends iproute2 >/dev/null 2>&1 || skip "no ip command"
fi
[ -x target/mpi/weft ] || fail "target/mpi/weft is missing; run tests/mpi.sh first"
launcher=$(command -v mpirun.openmpi || command -v mpirun) || skip "no mpirun"
trap cleanup EXIT
ip netns add "$name-bridge" 2>/dev/null || skip "namespaces are not allowed here"

# A bridge in a namespace of its own, and a cable from it to each host.
ip netns exec "$name-bridge" ip link add bridge type bridge 2>/dev/null || skip "no bridges in this kernel"
ip netns exec "$name-bridge" ip link set bridge up
for h in $(seq $hosts); do
    ip netns add "$name-$h"
    ip -n "$name-$h" link set lo up
    ip -n "$name-$h" link add net type veth peer name "port$h" netns "$name-bridge" || skip "no veth here"
    ip -n "$name-$h" addr add "10.77.0.$h/24" dev net
    ip -n "$name-$h" link set net up
    ip -n "$name-bridge" link set "port$h" master bridge up
done

# Takes what ssh would: options, then the host, then the command.
cat >"$out/agent" <<AGENT
#!/usr/bin/env bash
while [[ \$1 == -* ]]; do shift; done
host=\${1##*.}
shift
exec ip netns exec "$name-\$host" unshare --uts bash -c "hostname host\$host; \$*"
AGENT
chmod +x "$out/agent"

export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 RUST_BACKTRACE=0
quiet=(--quiet --set output.frames=false --set output.pictures=false --until 0.1)
# The first host launches, as a login node would.
across() {
    timeout --kill-after=5 120 ip netns exec "$name-1" unshare --uts bash -c 'hostname host1; exec "$@"' - \
        "$launcher" --mca plm_rsh_agent "$out/agent" --mca btl tcp,self \
        --mca btl_tcp_if_include 10.77.0.0/24 --mca oob_tcp_if_include 10.77.0.0/24 \
        --mca mpi_yield_when_idle 1 --mca hwloc_base_binding_policy none \
        --host 10.77.0.1:2,10.77.0.2:2,10.77.0.3:2 "$@"
}

if [ $# -gt 0 ]; then
    across -n 6 "$1" >"$out/stdout" 2>"$out/stderr" || {
        cat "$out/stdout" "$out/stderr" >&2
        fail "conformance across hosts failed"
    }
    grep -q "^6 ranks on $hosts nodes" "$out/stdout" || fail "ranks do not know their nodes"
    tail -1 "$out/stdout"
fi
target/mpi/weft run scenes/quick.toml --ranks 2 --out "$out/alone" "${quiet[@]}" >"$out/expected"
across -n 6 target/mpi/weft run scenes/quick.toml --out "$out/run" "${quiet[@]}" >"$out/stdout" 2>"$out/stderr" || {
    cat "$out/stdout" "$out/stderr" >&2
    fail "the run across hosts failed"
}
diff "$out/expected" "$out/stdout" || fail "another state on $hosts hosts"
for h in $(seq $hosts); do
    grep -q "\"host$h\": \[" "$out/run/run.json" || fail "run.json does not name host$h"
done
code=0
across -n 6 target/mpi/weft run scenes/quick.toml --out "$out/run" --overwrite "${quiet[@]}" \
    --set solver.max_iterations=1 --set solver.tolerance=1e-12 >"$out/stdout" 2>"$out/stderr" || code=$?
[ "$code" = 4 ] || fail "exit code $code of a failure across hosts, not 4"
[ "$(grep -c '^error: rank . on host' "$out/stderr")" = 1 ] || {
    cat "$out/stderr" >&2
    fail "not one message with rank and host"
}
echo "6 ranks on $hosts hosts: $(cat "$out/expected"); $(grep '^error: rank' "$out/stderr")"

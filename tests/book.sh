#!/usr/bin/env bash
# The command that makes the figures of the book still makes all of them: in small, on a copy of the
# book without any.
#
#   tests/book.sh
#
# Every picture that the book has must be there again, but for those that want a browser where there
# is none, and every table of a page must be filled. It does not look at the figures themselves.
# Needs Rust, and target/release/weft (or WEFT).
set -euo pipefail
cd "$(dirname "$0")/.."

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() {
    echo "tests/book.sh: $*" >&2
    exit 1
}

cp -r docs/src "$work/book"
(cd "$work/book" && find images validation -type f | sort) >"$work/pictures"
rm -r "$work/book/images/"* "$work/book/validation/"*
for page in "$work"/book/*.md "$work"/book/*/*.md; do
    awk '/^<!-- end -->$/ { on = 0 } !on; /^<!-- table .* -->$/ { on = 1 }' "$page" >"$work/page"
    [ "$(grep -c '^<!-- table .* -->$' "$page")" = "$(grep -c '^<!-- end -->$' "$page")" ] || fail "$page: a table without end"
    cat "$work/page" >"$page"
done
# Output of the bench; twenty minutes of it are not for a test.
mkdir "$work/out"
cat >"$work/out/mpirun.txt" <<'SAID'
drape-floor  ranks x workers  ms/step  collide  assemble  solve  respond  share
             1 x 1             19.51    5.94     2.84      7.74   0.65     0.10
             2 x 1             11.17    3.47     1.45      4.49   0.34     0.20
             1 x 2             12.13    3.79     1.71      4.52   0.57     0.10
    two ranks are 1.75 times as fast as one: collide 1.71, assemble 1.95, solve 1.72, respond 1.90, share 0.50
    two workers are 1.60 times as fast as one: collide 1.57, assemble 1.66, solve 1.71, respond 1.15, share 1.00
    two runs side by side are 1.98 times as fast as one after the other
drape-free   ranks x workers  ms/step  collide  assemble  solve  respond  share
             1 x 1             23.21    7.45     2.77      9.37   1.27     0.11
             2 x 1             13.30    4.33     1.45      5.33   0.88     0.21
             1 x 2             14.01    4.48     1.62      5.26   1.05     0.11
    two ranks are 1.74 times as fast as one: collide 1.72, assemble 1.92, solve 1.76, respond 1.43, share 0.52
    two workers are 1.66 times as fast as one: collide 1.66, assemble 1.71, solve 1.78, respond 1.21, share 1.00
    two runs side by side are 1.97 times as fast as one after the other
SAID
cat >"$work/out/order.txt" <<'SAID'
| scene | cost of the order | by chance | iterations with it, without |
|---|---|---|---|
| `drape-floor`, one rank | -0.48 % (-1.50 to +1.00) | +0.20 % (-1.60 to +2.10) | 151, 152 |
SAID
# Nor are sixteen cores for a test.
mkdir "$work/out/cores"
awk 'BEGIN {
    print "scene,network,policy,phase,ranks,repeats,time_ms"
    split("static every-other forecast forecast-static", policies, " ")
    for (p in policies) for (n = 1; n <= 16; n *= 2) {
        printf "drape-floor,this-machine,%s,collide,%d,3,%f\n", policies[p], n, 8 / n ^ (p / 5)
        printf "drape-floor,this-machine,%s,step,%d,3,%f\n", policies[p], n, 24 / n ^ (p / 5)
    }
}' >"$work/out/cores/study.csv"
printf '%s\n' '1 2.5' '2 2.6' '4 2.5' '8 3' '16 4' >"$work/out/cores-beside-1.txt"
printf '%s\n' '1 2.4' '2 2.5' '4 2.4' '8 3.1' '16 4.8' >"$work/out/cores-beside-2.txt"
status=0
OUT=$work/out BOOK=$work/book benches/study/book.sh --quick >"$work/said" 2>&1 || status=$?
[ "$status" = 0 ] || [ "$status" = 3 ] || fail "it ended with $status: $(cat "$work/said")"
not_made=$(sed -n '/^NOT MADE/,$p' "$work/said")
while read -r picture; do
    [ -s "$work/book/$picture" ] || [[ $not_made == *" $picture"* ]] || fail "no stage makes docs/src/$picture"
done <"$work/pictures"
(cd "$work/book" && find images validation -type f | sort) | comm -13 "$work/pictures" - >"$work/new"
[ ! -s "$work/new" ] || fail "docs/src lacks: $(cat "$work/new")"
for page in "$work"/book/*.md "$work"/book/*/*.md; do
    awk '
        /^<!-- table .* -->$/ { name = $3; rows = 0 }
        /^\|/ { rows++ }
        /[ +-](nan|inf)[ ,|]/ && /^\|/ && name != "" { print "the table " name " has: " $0; exit 1 }
        /^<!-- end -->$/ { if (rows < 3) { print "the table " name " is not filled"; exit 1 } name = "" }' "$page" >"$work/wrong" ||
        fail "${page##*/}: $(cat "$work/wrong")"
done
# shellcheck disable=SC2016
for row in '| one run on each core, how fast each is beside one alone | 100 % | 96 % | 100 % | 80 % | 60 % |' \
    '| collisions, forecast-static | 8.0 ms | 87 % (91) | 76 % (76) | 66 % (82) | 57 % (96) |' '| `drape-floor` | 19.5 | 11.2 | 1.75 | 12.1 | 1.60 |' '| respond | 1.27 | 0.88 | 1.43 | 1.05 | 1.21 |'; do
    grep -qF "$row" "$work/book/develop/scaling.md" || fail "what is measured under mpirun is not understood: no $row"
done
# shellcheck disable=SC2016
row='| `drape-floor`, one rank | −0.48 % (−1.50 to +1.00) | +0.20 % (−1.60 to +2.10) | 151, 152 |'
grep -qF "$row" "$work/book/understand/determinism.md" || fail "the cost of the order is not understood: no $row"
# Nothing is done again, and nothing else comes of it.
cp -r "$work/book" "$work/once"
OUT=$work/out BOOK=$work/book benches/study/book.sh --quick drape sheet pictures >/dev/null 2>&1 || fail "it does not go on from what is there"
diff -r "$work/once" "$work/book" >"$work/wrong" || fail "done twice it makes something else: $(cat "$work/wrong")"
if benches/study/book.sh nothing >/dev/null 2>&1; then fail "a stage that there is not is made"; fi
echo "the book's command makes all $(wc -l <"$work/pictures") pictures and $(cat "$work"/book/*.md "$work"/book/*/*.md | grep -c '^<!-- table ') tables${not_made:+, but for:${not_made#*was:}}"

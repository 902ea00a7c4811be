#!/bin/sh
# Runs every test: a file in tests is a title and, in its second line, the slug.
failed=0
for test in tests/*; do
  [ -e "$test" ] || continue
  title=$(sed -n 1p "$test")
  expected=$(sed -n 2p "$test")
  found=$(sh slug.sh "$title")
  [ "$found" = "$expected" ] || { echo "$test: \"$title\" became \"$found\", not \"$expected\""; failed=1; }
done
exit $failed

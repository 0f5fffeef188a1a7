#!/bin/sh
# From nothing to vectors: toy world -> tokenizer -> a BERT with random weights -> embed -> similarity.
# Usage: recipes/quickstart.sh OUTPUT_FOLDER
set -eu
out=${1:?give a folder for the results}
rm -rf "$out"

heedful toy "$out/world"
heedful tokenizer train "$out"/world/documents.*.txt -o "$out/tokenizer" --vocab-size 2000
heedful tokenizer show "$out/tokenizer" "Heedful readers pay attention. 你好"
heedful new "$out/model" --tokenizer "$out/tokenizer" --size tiny
heedful embed "$out/model" "$out/world/heldout.en.txt" -o "$out/vectors.npy"
heedful similarity "$out/model" "The teacher fed the cat." "The cat fed the teacher." "老师喂了猫。"
echo "All of it is in $out/. Next: 'heedful --help', or 'heedful similarity $out/model TEXT TEXT'."

#!/bin/sh
# From nothing to a BERT of your own: toy world -> tokenizer -> corpus -> pretraining (about a minute on two cores) ->
# hidden words guessed -> vectors -> similarities.
# Usage: recipes/quickstart.sh OUTPUT_FOLDER
set -eu
out=${1:?give a folder for the results}
rm -rf "$out"

heedful toy "$out/world"
heedful tokenizer train "$out"/world/documents.*.txt -o "$out/tokenizer" --vocab-size 2000
heedful corpus build "$out"/world/documents.*.txt -o "$out/corpus" --tokenizer "$out/tokenizer" --lines sentences \
    --held-out-file "$out/world/heldout.en.txt" --held-out-file "$out/world/heldout.zh.txt"
heedful pretrain "$out/corpus" -o "$out/run" --size tiny --budget 940steps --phases 64:100% --single-sentences \
    --batch-size 64 --lr 3e-3 --dropout 0 --eval-every 300
heedful fill "$out/run/model" "Henry Lu [MASK] the bird at dusk ." --top 3
heedful embed "$out/run/model" "$out/world/heldout.en.txt" -o "$out/vectors.npy"
heedful similarity "$out/run/model" "The teacher fed the cat." "The cat fed the teacher." "老师喂了猫。"
echo "All of it is in $out/; see $out/run/report.html. Next: 'heedful --help'."

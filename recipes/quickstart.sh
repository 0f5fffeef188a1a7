#!/bin/sh
# From nothing to a BERT of your own: toy world -> tokenizer -> corpus -> pretraining (about a minute on two cores) ->
# hidden words guessed -> vectors -> similarities.
# Usage: recipes/quickstart.sh OUTPUT_FOLDER
set -eu
out=${1:?give a folder for the results}
[ ! -e "$out" ] || { echo "$out is there already: name a new folder" >&2; exit 2; }

heedful toy "$out/world"
heedful tokenizer train "$out"/world/documents.*.txt -o "$out/tokenizer" --vocab-size 2000
heedful corpus build "$out"/world/documents.*.txt -o "$out/corpus" --tokenizer "$out/tokenizer" --lines sentences \
    --held-out-file "$out/world/heldout.en.txt" --held-out-file "$out/world/heldout.zh.txt"
heedful pretrain "$out/corpus" -o "$out/run" --size tiny --budget 940steps --phases 64:100% --single-sentences \
    --batch-size 64 --lr 3e-3 --dropout 0 --eval-every 300
heedful fill "$out/run/model" "The bird and Henry Lu [MASK] the press at dusk." --top 3
heedful embed "$out/run/model" "$out/world/heldout.en.txt" -o "$out/vectors.npy"
heedful similarity "$out/run/model" "The miller of Redhill had a grey dog." "The bird left the press at dusk." "红山的磨坊主有一只灰狗。"
echo "All of it is in $out/; see $out/run/report.html. Next: 'heedful --help'."

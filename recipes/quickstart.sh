#!/bin/sh
# From nothing to a BERT of your own: toy world -> tokenizer -> corpus -> pretraining (about a minute on two cores) ->
# hidden words guessed -> vectors -> similarities -> a fine-tuned classifier, tagger and answerer.
# Usage: recipes/quickstart.sh OUTPUT_FOLDER
set -eu
out=${1:?give a folder for the results}
[ ! -e "$out" ] || { echo "$out is there already: name a new folder" >&2; exit 2; }

heedful toy "$out/world"
heedful tokenizer train "$out"/world/documents.*.txt -o "$out/tokenizer" --vocab-size 2000
heedful corpus build "$out"/world/documents.*.txt -o "$out/corpus" --tokenizer "$out/tokenizer" --lines sentences \
    --held-out-file "$out/world/heldout.en.txt" --held-out-file "$out/world/heldout.zh.txt"
heedful pretrain "$out/corpus" -o "$out/run" --size tiny --budget 1200steps --phases 64:100% --pairs nsp --pairs-share 1 \
    --single-sentences --batch-size 64 --lr 2e-3 --mask-rate 0.1 --eval-every 400
heedful fill "$out/run/model" "The bird and Henry Lu [MASK] the press at dusk." --top 3
heedful embed "$out/run/model" "$out/world/heldout.en.txt" -o "$out/vectors.npy"
heedful similarity "$out/run/model" "The miller of Redhill had a grey dog." "The bird left the press at dusk." "红山的磨坊主有一只灰狗。"

# What pretraining is worth where labels are few: the same model with what it has learned, and with random weights.
for weights in pretrained random; do
    options=$([ $weights = random ] && echo --random-weights || true)
    heedful finetune classify --model "$out/run/model" --train "$out/world/sentiment.en/train.tsv" --limit 800 \
        --dev "$out/world/sentiment.en/dev.tsv" --pooling mean --lr 1e-3 --epochs 6 --dropout 0 $options -o "$out/classifier-$weights"
    heedful finetune tag --model "$out/run/model" --train "$out/world/tags.en/train.conll" --limit 300 \
        --dev "$out/world/tags.en/dev.conll" --lr 1e-3 --epochs 6 --dropout 0 $options -o "$out/tagger-$weights"
    heedful finetune answer --model "$out/run/model" --train "$out/world/roles.en/train.json" --max-length 128 \
        --dev "$out/world/roles.en/dev.json" --lr 1e-3 --epochs 6 --dropout 0 $options -o "$out/answerer-$weights"
done
heedful predict "$out/tagger-pretrained" "Lisa Lu, a weaver, bought Fiona Jiang in Carl Shen."
heedful predict "$out/answerer-pretrained" "Who got the net?" \
    --context "Lisa Lu saw how Carl Shen got the net from Fiona Jiang."
heedful report "$out"/classifier-* "$out"/tagger-* "$out"/answerer-* -o "$out/report.html"
echo "All of it is in $out/; see $out/run/report.html and $out/report.html. Next: 'heedful --help'."

#!/bin/sh
# English to German from 29,000 captions of Multi30k: a Transformer in an hour on one core, scored on test_2016_flickr.
# Usage: HEEDFUL_DATA=… recipes/translate_multi30k.sh OUTPUT_FOLDER [BUDGET] [MODEL]     (run again, it goes on)
# MODEL is transformer, attention or rnn. Needs sacrebleu: pip install 'heedful[eval]'
set -eu
out=${1:?give a folder for the results}
data=${HEEDFUL_DATA:?set HEEDFUL_DATA to the folder of the data sets}/multi30k
model=${3:-transformer}
# The options of docs/results.md.
case $model in
transformer) shape="--size tiny --lr 3e-3" ;;
*) shape="--lr 2e-3" ;;
esac

# shellcheck disable=SC2086  # several options
heedful translate train --train "$data/train.tsv.gz" --dev "$data/val.tsv" --source en --target de --model "$model" $shape \
    --vocab-size 5000 --dropout 0.2 --budget "${2:-60m}" -o "$out/run" --resume
heedful translate evaluate "$out/run" "$data/test_2016_flickr.tsv" -o "$out/test.translated.de"

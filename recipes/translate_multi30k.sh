#!/bin/sh
# An English-German Transformer from the 29,000 pairs of Multi30k, an hour on one core; then BLEU on its test set.
# Usage: HEEDFUL_DATA=… recipes/translate_multi30k.sh OUTPUT_FOLDER [BUDGET]     (run again, it goes on where it was)
set -eu
out=${1:?give a folder for the results}
pairs=${HEEDFUL_DATA:?set HEEDFUL_DATA to the folder of the data sets}/multi30k

heedful translate train --train "$pairs/train.tsv.gz" --dev "$pairs/val.tsv" --source en --target de -o "$out/run" \
    --size tiny --vocab-size 5000 --dropout 0.2 --lr 3e-3 --precision bfloat16 --budget "${2:-60m}" --resume
heedful translate evaluate "$out/run" "$pairs/test_2016_flickr.tsv" --beam 5
head -n 4 "$pairs/test_2016_flickr.tsv" | tail -n 3 | cut -f 1 |
    heedful translate run "$out/run" --alignments "$out/alignments.html"

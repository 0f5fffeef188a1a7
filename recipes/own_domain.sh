#!/bin/sh
# From the raw text of a field and a few hundred labels to its words, vectors, a classifier, search and a small model:
# the commands of docs/own-domain.md.
# Usage: MODEL=a-BERT [BUDGET=10m] [SIZE=mini] recipes/own_domain.sh FOLDER
# FOLDER has text.tsv (a column `text`), judged.tsv (two texts and a number), meant.tsv (two texts that mean the same),
# few.tsv and dev.tsv (texts and labels).
# Without them it gets captions of pictures: Multi30k as text, SICK as judgements and labels, from $HEEDFUL_DATA.
set -eu
folder=${1:?give a folder with the text and the labels, or for the results}
MODEL=$(cd "${MODEL:?set MODEL to the folder of a BERT}" && pwd)
BUDGET=${BUDGET:-10m}
SIZE=${SIZE:-mini}
if [ ! -e "$folder/text.tsv" ]; then
    data=${HEEDFUL_DATA:?set HEEDFUL_DATA to the folder of the data sets, or fill $folder}
    mkdir -p "$folder"
    { echo text; gzip -cd "$data/multi30k/train.tsv.gz" | tail -n +2 | cut -f 1; } >"$folder/text.tsv"
    awk -F '\t' 'NR > 1 { print $3 "\t" $4 "\t" $2 }' "$data/sick/dev.tsv" >"$folder/judged.tsv"
    awk -F '\t' 'NR == 1 { print "text\tpair" } $1 == "entailment" { print $3 "\t" $4 }' "$data/sick/dev.tsv" >"$folder/meant.tsv"
    cut -f 1,3,4 "$data/sick/train.tsv" | head -501 >"$folder/few.tsv"
    cut -f 1,3,4 "$data/sick/dev.tsv" >"$folder/dev.tsv"
fi
cd "$folder"

# The commands of the page from here on.
heedful similarity "$MODEL" --pairs judged.tsv

heedful tokenizer extend "$MODEL" --from-text text.tsv --count 300 -o words
heedful corpus build text.tsv -o corpus --tokenizer words --held-out 0.02

heedful pretrain corpus --from "$MODEL" --pairs none --phases 64:100% --lr 1e-4 --budget "$BUDGET" -o further
heedful similarity further --pairs judged.tsv

heedful tokenizer train text.tsv -o own-words --vocab-size 8000
heedful corpus build text.tsv -o own-corpus --tokenizer own-words --held-out 0.02
heedful pretrain own-corpus --size "$SIZE" --pairs none --phases 64:100% --lr 1e-3 --budget "$BUDGET" -o own
heedful similarity own --pairs judged.tsv

heedful finetune embed --model further --train text.tsv --max-length 64 --budget "$BUDGET" -o further-vectors
heedful similarity further-vectors --pairs judged.tsv
heedful finetune embed --model own --train text.tsv --max-length 64 --budget "$BUDGET" -o own-vectors
heedful similarity own-vectors --pairs judged.tsv
heedful whiten own text.tsv -o own-whitened
heedful similarity own-whitened --pairs judged.tsv

heedful finetune classify --model "$MODEL" --train few.tsv --dev dev.tsv --pooling mean --epochs 5 --seeds 3 -o with-general
heedful finetune classify --model further --train few.tsv --dev dev.tsv --pooling mean --epochs 5 --seeds 3 -o with-further
heedful finetune classify --model own --train few.tsv --dev dev.tsv --pooling mean --epochs 5 --seeds 3 -o with-own

heedful search index --model further-vectors --add text.tsv
heedful search index "a man rides a bicycle" --top 3
heedful evaluate further-vectors meant.tsv
heedful evaluate own-vectors meant.tsv

heedful distil "$MODEL" --train text.tsv --size "$SIZE" --budget "$BUDGET" -o small
heedful similarity small --pairs judged.tsv

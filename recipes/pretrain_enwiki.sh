#!/bin/sh
# An English BERT-mini with a vocabulary of 8,000 pieces from 53 MB of Wikipedia, half an hour on two cores.
# Usage: HEEDFUL_DATA=… recipes/pretrain_enwiki.sh OUTPUT_FOLDER [BUDGET]     (run again, it goes on where it was)
set -eu
out=${1:?give a folder for the results}
text=${HEEDFUL_DATA:?set HEEDFUL_DATA to the folder of the data sets}/corpus_enwiki/enwiki.jsonl.gz

[ -e "$out/tokenizer" ] || heedful tokenizer train "$text" -o "$out/tokenizer" --vocab-size 8000
heedful corpus build "$text" -o "$out/corpus" --tokenizer "$out/tokenizer" --drop-headings --workers 2
heedful pretrain "$out/corpus" -o "$out/run" --size mini --budget "${2:-30m}" --resume
heedful fill "$out/run/model" "The capital of France is [MASK]."
heedful fill "$out/run/model" "He was born in [MASK] and died in London."

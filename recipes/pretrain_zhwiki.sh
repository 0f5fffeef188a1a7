#!/bin/sh
# A Chinese BERT-mini with whole-word masking and 8,000 pieces from 60 MB of Wikipedia, twenty minutes on two cores.
# Usage: HEEDFUL_DATA=… recipes/pretrain_zhwiki.sh OUTPUT_FOLDER [BUDGET]     (run again, it goes on where it was)
# Needs jieba: pip install 'heedful[zh]'
set -eu
out=${1:?give a folder for the results}
text=${HEEDFUL_DATA:?set HEEDFUL_DATA to the folder of the data sets}/corpus_zhwiki/zhwiki_sample.jsonl.gz

[ -e "$out/tokenizer" ] || heedful tokenizer train "$text" -o "$out/tokenizer" --vocab-size 8000
heedful corpus build "$text" -o "$out/corpus" --tokenizer "$out/tokenizer" --words --workers 2
# Words of several characters are hidden whole.
heedful pretrain "$out/corpus" -o "$out/run" --size mini --budget "${2:-20m}" --masking word --resume
heedful fill "$out/run/model" "北京是中国的首[MASK]。"
heedful fill "$out/run/model" "他毕业于清华[MASK]学。"

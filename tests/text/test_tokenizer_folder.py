"""Reading and writing tokenizer folders: both file formats, settings, refusals."""

import json

import pytest

from heedful.errors import HeedfulError
from heedful.text.tokenizer import Tokenizer

SPECIALS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


def vocab_folder(folder, pieces, **settings):
    (folder / "vocab.txt").write_text("\n".join(SPECIALS + pieces) + "\n", encoding="utf-8")
    if settings:
        (folder / "tokenizer_config.json").write_text(json.dumps(settings), encoding="utf-8")
    return folder


@pytest.mark.parametrize("kind", ["wordpiece", "bpe"])
def test_a_saved_tokenizer_is_the_same_when_loaded(kind, request, tmp_path):
    tokenizer = request.getfixturevalue(kind)
    tokenizer.model_max_length = 128
    tokenizer.save(tmp_path / "deep" / "folder")
    again = Tokenizer.load(tmp_path / "deep" / "folder")
    text = "She LOVED 中国, naïve 😀"
    assert again.encode(text, "北京").ids == tokenizer.encode(text, "北京").ids
    assert again.vocabulary == tokenizer.vocabulary and again.model_max_length == 128
    assert not list(tmp_path.rglob(".*"))


def test_the_same_ids_from_the_json_and_from_the_bare_vocabulary(wordpiece, tmp_path):
    wordpiece.save(tmp_path)
    from_vocab = Tokenizer.load(tmp_path / "vocab.txt")
    assert from_vocab.encode("The café, 爱!").ids == Tokenizer.load(tmp_path).encode("The café, 爱!").ids


def test_without_settings_the_vocabulary_decides_on_case(tmp_path):
    assert Tokenizer.load(vocab_folder(tmp_path, ["hello", "<S>"])).encode("HELLO").tokens[1] == "hello"
    assert Tokenizer.load(vocab_folder(tmp_path, ["hello", "Hello"])).encode("Hello").tokens[1] == "Hello"


def test_blank_lines_and_odd_line_ends(tmp_path):
    (tmp_path / "vocab.txt").write_bytes("\r\n".join([*SPECIALS, "", "\u2028", "a", "", ""]).encode())
    tokenizer = Tokenizer.load(tmp_path)
    assert tokenizer.vocabulary[5:] == ["", "\u2028", "a"]


def test_settings_are_honoured_and_can_be_overridden(tmp_path):
    cased = vocab_folder(tmp_path, ["hello"], do_lower_case=False, model_max_length=1e30)
    assert Tokenizer.load(cased).encode("HELLO").tokens[1] == "[UNK]"
    assert Tokenizer.load(cased, lowercase=True).encode("HELLO").tokens[1] == "hello"
    assert Tokenizer.load(cased).model_max_length is None
    accents = vocab_folder(tmp_path, ["cafe", "café", "中", "中国"], strip_accents=False, tokenize_chinese_chars=False)
    assert Tokenizer.load(accents).encode("Café 中国").tokens[1:3] == ["café", "中国"]


def test_the_settings_file_wins_over_the_json(wordpiece, tmp_path):
    wordpiece.save(tmp_path)
    settings = json.loads((tmp_path / "tokenizer_config.json").read_text())
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({**settings, "do_lower_case": False}))
    assert Tokenizer.load(tmp_path).encode("SHE").tokens == ["[CLS]", "[UNK]", "[SEP]"]


def test_other_names_for_the_special_tokens(tmp_path):
    (tmp_path / "vocab.txt").write_text("<pad>\n<unk>\n<s>\n</s>\n<mask>\na\n")
    names = {"pad_token": "<pad>", "unk_token": "<unk>", "cls_token": "<s>", "sep_token": {"content": "</s>"}}
    (tmp_path / "special_tokens_map.json").write_text(json.dumps({**names, "mask_token": "<mask>"}))
    tokenizer = Tokenizer.load(tmp_path)
    assert tokenizer.encode("a b").tokens == ["<s>", "a", "<unk>", "</s>"]
    assert (tokenizer.pad_id, tokenizer.mask_id) == (0, 4)


def test_baked_in_truncation_and_padding_are_switched_off(wordpiece, tmp_path):
    wordpiece.save(tmp_path)
    library = Tokenizer.load(tmp_path).library
    library.enable_truncation(4)
    library.enable_padding(length=64)
    library.save(str(tmp_path / "tokenizer.json"))
    encoding = Tokenizer.load(tmp_path).encode("我爱北京天安门")
    assert len(encoding) == 9 and encoding.tokens[-1] == "[SEP]"


def test_a_mask_the_vocabulary_lacks_is_missed_only_when_asked_for(tmp_path):
    (tmp_path / "vocab.txt").write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\na\n")
    tokenizer = Tokenizer.load(tmp_path)
    assert tokenizer.encode("a").ids == [2, 4, 3]
    with pytest.raises(HeedfulError, match="no mask token"):
        _ = tokenizer.mask_id


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("tokenizer.json", b"{", "not a tokenizer"),
        ("vocab.txt", b"a\nb\n", "no \\[UNK\\]"),
        ("vocab.txt", b"[UNK]\n\xff\n", "UTF-8"),
        ("tokenizer.json", b"[" * 100_000, "not a tokenizer"),
        ("tokenizer_config.json", b"[1]", "JSON object"),
        ("tokenizer_config.json", b"{", "not JSON"),
        ("tokenizer_config.json", b"[" * 100_000, "not readable JSON"),
        ("tokenizer_config.json", b'{"do_lower_case": "true"}', "do_lower_case is 'true'"),
        ("tokenizer_config.json", b'{"tokenize_chinese_chars": 1}', "tokenize_chinese_chars is 1"),
        ("tokenizer_config.json", b'{"cls_token": {}}', "cls_token is {}, which has no text"),
        ("special_tokens_map.json", b'{"mask_token": 5}', "mask_token is 5"),
        ("special_tokens_map.json", b'{"pad_token": ""}', "pad_token is ''"),
    ],
)
def test_broken_files_are_named(tmp_path, name, content, message):
    vocab_folder(tmp_path, ["a"])
    (tmp_path / name).write_bytes(content)
    with pytest.raises(HeedfulError, match=message) as caught:
        Tokenizer.load(tmp_path)
    assert str(tmp_path / name) in str(caught.value) and caught.value.remedy


@pytest.mark.parametrize("as_json", [False, True])
def test_null_in_the_settings_is_as_good_as_absent(wordpiece, tmp_path, as_json):
    wordpiece.save(tmp_path)
    if not as_json:
        (tmp_path / "tokenizer.json").unlink()
    keys = ["do_lower_case", "strip_accents", "tokenize_chinese_chars", "mask_token", "unk_token", "model_max_length"]
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(dict.fromkeys(keys)))
    (tmp_path / "special_tokens_map.json").unlink()
    tokenizer = Tokenizer.load(tmp_path)
    assert tokenizer.special_tokens == wordpiece.special_tokens
    assert tokenizer.encode("The CAFÉ 爱").ids == wordpiece.encode("The CAFÉ 爱").ids


def test_a_vocabulary_that_cannot_be_read(tmp_path, monkeypatch):
    def refuse(*_, **__):
        raise PermissionError(13, "Permission denied")

    vocab_folder(tmp_path, ["a"])
    monkeypatch.setattr("pathlib.Path.read_text", refuse)
    with pytest.raises(HeedfulError, match="Permission denied") as caught:
        Tokenizer.load(tmp_path)
    assert caught.value.where == tmp_path / "vocab.txt"


def test_nothing_to_load(tmp_path):
    with pytest.raises(HeedfulError, match=r"no tokenizer.json and no vocab.txt"):
        Tokenizer.load(tmp_path)
    with pytest.raises(HeedfulError, match="no such folder"):
        Tokenizer.load(tmp_path / "missing")


def test_a_folder_that_cannot_be_written(wordpiece, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(HeedfulError, match="cannot write"):
        wordpiece.save(tmp_path / "file")


def test_a_frame_that_names_a_token_it_does_not_have_is_refused(tmp_path, wordpiece):
    wordpiece.save(tmp_path)
    file = tmp_path / "tokenizer.json"
    settings = json.loads(file.read_text(encoding="utf-8"))
    settings["post_processor"]["special_tokens"].pop("[SEP]")
    file.write_text(json.dumps(settings), encoding="utf-8")
    with pytest.raises(HeedfulError, match="not a tokenizer of the tokenizers library"):
        Tokenizer.load(tmp_path)

"""The tokenizer files of a model folder, as Hugging Face and Google lay them out."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import tokenizers
from tokenizers import decoders, normalizers, pre_tokenizers, processors

from heedful.atomic import atomic_file
from heedful.errors import HeedfulError, no_such_model
from heedful.json_files import read_json
from heedful.text import sentencepiece_pipeline
from heedful.text.bert_pipeline import SPECIAL_TOKENS, wordpiece_tokenizer

# Hugging Face writes 1e30 for "no limit".
NO_LIMIT = 10**9
# What other models call the special tokens, where the folder does not say: RoBERTa's files name none.
OTHER_NAMES: Mapping[str, tuple[str, ...]] = {
    "pad": ("<pad>",),
    "unk": ("<unk>",),
    "cls": ("<cls>", "<s>"),
    "sep": ("<sep>", "</s>"),
    "mask": ("<mask>",),
}
FILES = ("tokenizer.json", "vocab.txt", "vocab.json", *sentencepiece_pipeline.FILES)
# What tokenizers of models that read from left to right have besides.
_ENDS = ("bos", "eos")
END_OF_TEXT = "<|endoftext|>"
_TOKEN_KEYS = {f"{role}_token" for role in (*SPECIAL_TOKENS, *_ENDS)}
_SWITCHES = ("do_lower_case", "strip_accents", "tokenize_chinese_chars", "keep_accents")
_REMEDY = "give a folder or file written by `heedful tokenizer train`, Hugging Face or Google"


def read(path: Path, lowercase: bool | None) -> tuple[tokenizers.Tokenizer, dict[str, str], int | None]:
    """The library's tokenizer, the special tokens by role and the longest input, from a folder or one of its files."""
    file = tokenizer_file(path)
    settings = _settings(file.parent)
    if lowercase is not None:
        settings["do_lower_case"] = lowercase
    if file.name == "vocab.json":
        library, special_tokens = _read_merges(file, settings)
    elif file.suffix == ".model":
        library, special_tokens = sentencepiece_pipeline.sentencepiece_tokenizer(file, settings)
    elif file.suffix == ".json":
        library = _read_json(file, settings)
        special_tokens = _special_tokens(settings, library.get_vocab())
    else:
        special_tokens = {role: settings.get(f"{role}_token", usual) for role, usual in SPECIAL_TOKENS.items()}
        library = _read_vocab(file, settings, special_tokens)
    special_tokens |= {role: settings[f"{role}_token"] for role in _ENDS if f"{role}_token" in settings}
    if "eos" not in special_tokens and library.token_to_id(END_OF_TEXT) is not None:
        special_tokens |= {"bos": END_OF_TEXT, "eos": END_OF_TEXT}
    limit = settings.get("model_max_length")
    return library, special_tokens, int(limit) if isinstance(limit, int | float) and 0 < limit < NO_LIMIT else None


def is_here(folder: Path) -> bool:
    """Whether a folder has the files of a tokenizer; a vocabulary of BPE alone, without its merges, is none."""
    return any((folder / name).is_file() for name in FILES if name != "vocab.json" or (folder / "merges.txt").is_file())


def tokenizer_file(path: Path) -> Path:
    """The file of a tokenizer that a folder is read from, or the file itself."""
    if path.is_file():
        return path
    for name in FILES:
        if (path / name).is_file():
            return path / name
    if not path.is_dir():
        raise no_such_model(path, "a tokenizer.json or vocab.txt")
    raise HeedfulError("no tokenizer.json and no vocab.txt here", where=path, remedy=_REMEDY)


def _special_tokens(settings: Mapping[str, Any], vocabulary: Mapping[str, int]) -> dict[str, str]:
    """The special tokens by role: as the folder names them, else by the names they have in other models."""
    found = {}
    for role, usual in SPECIAL_TOKENS.items():
        known = [name for name in (usual, *OTHER_NAMES[role]) if name in vocabulary]
        found[role] = settings.get(f"{role}_token", known[0] if known else usual)
    return found


def _settings(folder: Path) -> dict[str, Any]:
    merged: dict[str, Any] = {}
    for name in ("special_tokens_map.json", "tokenizer_config.json"):
        if (folder / name).is_file():
            merged.update(_checked(read_json(folder / name), folder / name))
    return merged


def _checked(values: Mapping[str, Any], file: Path) -> dict[str, Any]:
    """The settings of a file, special tokens as their text; null says nothing, except about accents."""
    given = {key: value for key, value in values.items() if value is not None or key == "strip_accents"}
    for key in _SWITCHES:
        if not isinstance(given.get(key), bool | None):
            raise HeedfulError(f"{key} is {given[key]!r}", where=file, remedy="write true or false, without quotes")
    for key in given.keys() & _TOKEN_KEYS:
        given[key] = _token_text(key, given[key], file)
    return given


def _token_text(key: str, token: Any, file: Path) -> str:
    text = token.get("content") if isinstance(token, dict) else token
    if not isinstance(text, str) or not text:
        remedy = "give the token's text, or leave the key out"
        raise HeedfulError(f"{key} is {token!r}, which has no text", where=file, remedy=remedy)
    return text


RARE = "\U0002a6df"  # an ideograph that hardly any vocabulary has


def _read_json(file: Path, settings: Mapping[str, Any]) -> tokenizers.Tokenizer:
    try:
        library = tokenizers.Tokenizer.from_file(str(file))
        for pair in (None, RARE):  # frames may name special tokens that they do not have, and a model no unknown one
            library.encode(RARE, pair)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # the library raises nothing narrower, and a panic of its Rust code is no Exception
        raise HeedfulError(f"not a tokenizer of the tokenizers library: {error}", where=file, remedy=_REMEDY) from error
    normalizer = library.normalizer
    if isinstance(normalizer, normalizers.BertNormalizer):
        # Where the two files disagree Hugging Face follows tokenizer_config.json, and so do we.
        normalizer.lowercase = settings.get("do_lower_case", normalizer.lowercase)
        normalizer.strip_accents = settings.get("strip_accents", normalizer.strip_accents)
        normalizer.handle_chinese_chars = settings.get("tokenize_chinese_chars", normalizer.handle_chinese_chars)
    return library


def _read_vocab(file: Path, settings: Mapping[str, Any], special_tokens: Mapping[str, str]) -> tokenizers.Tokenizer:
    vocabulary = _vocabulary(file)
    for role in ("unk", "cls", "sep"):
        if special_tokens[role] not in vocabulary:
            what = f"the vocabulary has no {special_tokens[role]}, which BERT needs"
            raise HeedfulError(what, where=file, remedy="give BERT's vocab.txt, one piece a line")
    lowercase = settings.get("do_lower_case")
    return wordpiece_tokenizer(
        vocabulary,
        special_tokens,
        lowercase=not _has_capitals(vocabulary) if lowercase is None else lowercase,
        strip_accents=settings.get("strip_accents"),
        split_chinese=settings.get("tokenize_chinese_chars", True),
    )


def _read_merges(file: Path, settings: Mapping[str, Any]) -> tuple[tokenizers.Tokenizer, dict[str, str]]:
    """Byte-level BPE from vocab.json and merges.txt, in RoBERTa's frame: `<s> A </s></s> B </s>`."""
    try:
        model = tokenizers.models.BPE.from_file(str(file), str(file.with_name("merges.txt")))
    except Exception as error:  # the library raises nothing narrower
        what = f"no vocabulary with merges of byte-level BPE: {error}"
        raise HeedfulError(what, where=file, remedy="put its merges.txt or a tokenizer.json beside it") from error
    library = tokenizers.Tokenizer(model)
    ids = library.get_vocab()
    named = _special_tokens(settings, ids)
    space = bool(settings.get("add_prefix_space", False))
    library.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=space)
    library.decoder = decoders.ByteLevel()
    for role in sorted(named.keys() & {role for role, token in named.items() if token in ids}):
        # Hugging Face lets the mask swallow the space before it.
        library.add_special_tokens([tokenizers.AddedToken(named[role], lstrip=role == "mask", normalized=False)])
    if END_OF_TEXT in ids:
        library.add_special_tokens([END_OF_TEXT])
    if named["cls"] in ids and named["sep"] in ids:
        sep, cls = ((named[role], ids[named[role]]) for role in ("sep", "cls"))
        library.post_processor = processors.RobertaProcessing(sep, cls, trim_offsets=True, add_prefix_space=space)
    return library, named


def _vocabulary(file: Path) -> dict[str, int]:
    try:
        # Universal newlines, but none of the other line ends of Unicode, which are pieces in some vocabularies.
        pieces = file.read_text(encoding="utf-8").rstrip("\n").split("\n")
    except UnicodeDecodeError as error:
        raise HeedfulError(f"not UTF-8: {error}", where=file, remedy=_REMEDY) from error
    except OSError as error:
        what = f"cannot be read: {error.strerror}"
        raise HeedfulError(what, where=file, remedy="see that it is a file you may read") from error
    return {piece: number for number, piece in enumerate(pieces)}


def _has_capitals(vocabulary: Mapping[str, int]) -> bool:
    # Only whole words count: Google's lower-casing Chinese vocabulary holds the markers <S> and <T>.
    return any(piece != piece.lower() for piece in vocabulary if piece.isalpha())


def write(
    folder: Path, library: tokenizers.Tokenizer, special_tokens: Mapping[str, str], model_max_length: int | None
) -> None:
    """Write tokenizer.json, its parts (vocab.txt, or vocab.json and merges.txt) and the two settings files."""
    known = library.get_vocab()  # Hugging Face would add a token that is named but not there
    named = {f"{role}_token": token for role, token in special_tokens.items() if token in known}
    files = {
        "tokenizer.json": library.to_str(pretty=True),
        "special_tokens_map.json": _as_json(named),
        "tokenizer_config.json": _as_json(
            {**named, **_class_settings(library, special_tokens), **_limit(model_max_length)}
        ),
        **_model_files(json.loads(library.to_str())["model"]),
    }
    for name, content in files.items():
        with atomic_file(folder / name) as file:
            file.write(content)


def _class_settings(library: tokenizers.Tokenizer, special_tokens: Mapping[str, str]) -> dict[str, Any]:
    normalizer = library.normalizer
    words = isinstance(library.model, tokenizers.models.WordPiece)
    # Hugging Face's BertTokenizer puts [CLS] and [SEP] around texts whatever tokenizer.json says.
    framed = library.encode("").tokens == [special_tokens.get(role) for role in ("cls", "sep")]
    if not words or not framed or not isinstance(normalizer, normalizers.BertNormalizer):
        return {"tokenizer_class": "PreTrainedTokenizerFast"}
    return {
        "tokenizer_class": "BertTokenizer",
        "do_lower_case": normalizer.lowercase,
        "strip_accents": normalizer.strip_accents,
        "tokenize_chinese_chars": normalizer.handle_chinese_chars,
    }


def _limit(model_max_length: int | None) -> dict[str, int]:
    return {} if model_max_length is None else {"model_max_length": model_max_length}


def _model_files(model: Mapping[str, Any]) -> dict[str, str]:
    vocabulary: dict[str, int] = model["vocab"]
    if model["type"] == "WordPiece":
        pieces = [""] * (max(vocabulary.values()) + 1)
        for piece, number in vocabulary.items():
            pieces[number] = piece
        return {"vocab.txt": "".join(f"{piece}\n" for piece in pieces)}
    if model["type"] == "BPE":
        merges = [merge if isinstance(merge, str) else " ".join(merge) for merge in model["merges"]]
        return {
            "vocab.json": json.dumps(vocabulary, ensure_ascii=False),
            "merges.txt": "".join(f"{line}\n" for line in ["#version: 0.2", *merges]),
        }
    return {}


def _as_json(value: Mapping[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2) + "\n"

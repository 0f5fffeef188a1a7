"""Who and what there is in the toy world, each thing with its English and its Chinese word."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random
from typing import NamedTuple

LANGUAGES = ("en", "zh")


class Word(NamedTuple):
    """One thing in two languages; also used for whole sentence patterns."""

    en: str
    zh: str

    def say(self, language: str) -> str:
        """The word in `language`, "en" or "zh"."""
        return self.en if language == "en" else self.zh


class Job(NamedTuple):
    """A trade: where it is done, how, with which tools, and what comes of it."""

    title: Word
    place: Word
    made: Word
    tools: tuple[Word, ...]
    goods: tuple[Word, ...]


class Animal(NamedTuple):
    """A kind of animal: what it is called, does and eats, and the Chinese measure word it is counted with."""

    kind: Word
    sound: Word
    food: Word
    measure: str


def word_list(text: str) -> tuple[Word, ...]:
    """Parse "dog 狗, cat 猫"."""
    return tuple(Word(*pair.split()) for pair in text.split(","))


def _rows(table: str) -> Iterator[list[tuple[Word, ...]]]:
    """Parse a table whose cells are word lists."""
    return ([word_list(cell) for cell in line.split("|")] for line in table.strip().splitlines())


_JOBS = """
baker 面包师 | bakery 面包房 | baked 烤 | oven 炉, knife 刀, tray 盘 | bread 面包, cakes 蛋糕
fisher 渔夫 | harbour 渔港 | caught 捕 | net 网, hook 钩, boat 船 | cod 鳕鱼, crabs 螃蟹
tailor 裁缝 | boutique 裁缝铺 | sewed 缝 | needle 针, ruler 尺, thread 线 | coats 大衣, shirts 衬衫
potter 陶匠 | pottery 陶坊 | shaped 捏 | kiln 窑, wheel 轮, mould 模 | cups 杯子, vases 花瓶
smith 铁匠 | forge 铁铺 | hammered 打 | anvil 砧, hammer 锤, clamp 钳 | nails 铁钉, swords 宝剑
gardener 园丁 | greenhouse 花房 | grew 种 | spade 铲, rake 耙, hoe 锄 | roses 玫瑰, tulips 郁金香
carpenter 木匠 | workshop 木工坊 | carved 雕 | saw 锯, chisel 凿, drill 钻 | chairs 椅子, tables 桌子
painter 画家 | studio 画室 | painted 画 | brush 笔, easel 架, palette 板 | portraits 肖像, landscapes 山水
printer 印刷工 | press 印刷厂 | printed 印 | roller 辊, ink 墨, plate 版 | books 书本, posters 海报
miller 磨坊主 | mill 磨坊 | ground 磨 | sieve 筛, sack 袋, hopper 斗 | flour 面粉, oats 燕麦
brewer 酿酒师 | brewery 酒坊 | brewed 酿 | barrel 桶, ladle 勺, jug 壶 | beer 啤酒, cider 苹果酒
beekeeper 养蜂人 | meadow 草地 | gathered 采 | hive 箱, veil 纱, cage 笼 | honey 蜂蜜, wax 蜂蜡
jeweller 珠宝匠 | vault 珠宝行 | polished 擦 | lens 镜, scale 秤, file 锉 | rings 戒指, pearls 珍珠
weaver 织工 | cottage 织坊 | wove 织 | loom 机, spindle 锭, shuttle 梭 | rugs 地毯, blankets 毛毯
"""

_ANIMALS = """
dog 狗 | barked 汪汪叫 | bones 骨 | one 只
cat 猫 | purred 喵喵叫 | milk 奶 | one 只
bird 鸟 | chattered 喳喳叫 | seeds 籽 | one 只
horse 马 | neighed 嘶嘶叫 | hay 草 | one 匹
hen 鸡 | clucked 咯咯叫 | corn 谷 | one 只
goat 羊 | bleated 咩咩叫 | leaves 叶 | one 只
duck 鸭 | quacked 嘎嘎叫 | snails 螺 | one 只
pig 猪 | grunted 哼哼叫 | potatoes 薯 | one 头
frog 蛙 | croaked 呱呱叫 | flies 虫 | one 只
donkey 驴 | brayed 昂昂叫 | melons 瓜 | one 头
"""

JOBS = tuple(Job(title[0], place[0], made[0], tools, goods) for title, place, made, tools, goods in _rows(_JOBS))
ANIMALS = tuple(Animal(kind[0], sound[0], food[0], one[0].zh) for kind, sound, food, one in _rows(_ANIMALS))
TOWNS = word_list(
    "Redhill 红山, Greenford 绿津, Stonebridge 石桥, Lakeside 湖滨, Oakwood 橡林, Whitecliff 白崖, "
    "Goldfield 金野, Foxhollow 狐谷, Riverton 河湾, Sandport 沙洲, Pinecrest 松岭, Windgate 风门"
)
COLOURS = word_list("black 黑, white 白, brown 棕, grey 灰, red 红, yellow 黄")

# A person has a given and a family name; in Chinese the family name comes first. The given name tells she from he.
# None of these characters is used for anything else in the world.
_SHE = word_list(
    "Anna 娜, Bella 蓓, Clara 兰, Daisy 黛, Emily 莉, Fiona 菲, Gina 琴, Helen 荷, Irene 琳, Judy 茱, Karen 岚, Lisa 丽"
)
_HE = word_list(
    "Adam 亚, Brian 斌, Carl 凯, David 伟, Eric 瑞, Frank 帆, George 杰, Henry 恒, Ivan 毅, Jack 捷, Kevin 强, Leo 磊"
)
_GIVEN = _SHE + _HE
_FAMILY = word_list(
    "Zhao 赵, Qian 钱, Sun 孙, Li 李, Zhou 周, Wu 吴, Zheng 郑, Feng 冯, Chen 陈, Wei 魏, Jiang 蒋, Shen 沈, "
    "Han 韩, Xu 许, Lu 吕, Shi 施, Kong 孔, Cao 曹, Yan 严, Hua 华, Pan 潘, Ge 葛, Fan 范, Peng 彭"
)


def _names() -> Iterator[tuple[bool, Word]]:
    """Every full name, and whether it is kept out of training: one in five; its two parts are seen in other names."""
    for i, given in enumerate(_GIVEN):
        for j, family in enumerate(_FAMILY):
            yield (i + j) % 5 == 0, Word(f"{given.en} {family.en}", family.zh + given.zh)


SEEN_NAMES = tuple(name for unseen, name in _names() if not unseen)
UNSEEN_NAMES = tuple(name for unseen, name in _names() if unseen)


def draw_people(rng: Random, names: Sequence[Word], count: int) -> list[Word]:
    """`count` of the names, no two with a given or family name in common."""
    found: list[Word] = []
    while len(found) < count:
        name = rng.choice(names)
        if not any(set(name.zh) & set(other.zh) for other in found):
            found.append(name)
    return found


def is_she(name: Word) -> bool:
    """Whether stories call the bearer of `name` she; otherwise he."""
    return name.zh[1] in {given.zh for given in _SHE}

// What the page says, in both languages; and what each verb asks for, with something to begin with.
export const spoken = { language: "en" };
export const w = (name) => WORDS[spoken.language][name];
export const number = (value) => value.toLocaleString(spoken.language, { maximumFractionDigits: 2 });
// Models write the place of a hidden word each in their own way.
export const starts = (mask = "[MASK]") => ({ ...STARTS[spoken.language], mask: STARTS[spoken.language].mask.replace("[MASK]", mask) });

const WORDS = {
  en: {
    skip: "Skip to the text", model: "Model", routes: "Routes", other_language: "中文", same_call: "The same call", what: "What to do", answer: "Answer",
    key: "Key of this server", go: "Go", run: "Run", running: "Running …", loading: "The models are being loaded …", stop: "Stop", ready: "The answer is there.", copy: "Copy", copied: "Copied",
    text: "Text", texts: "Texts, one a line", pair: "Second text, if any", second: "Second text", question: "Question", context: "Context",
    choices: "Endings, one a line", prompt: "Prompt", max_tokens: "Most tokens", temperature: "Temperature (0: the likeliest)", query: "Query", source: "Source", translation: "Translation", top: "How many",
    beam: "Beam", n_best: "Translations", layer: "Layer", head: "Head", all_heads: "mean of all", pooling: "Pooling",
    own: "the folder's own", clocks: ["queue {queue} ms", "tokenizing {tokenize} ms", "computing {compute} ms", "round trip {total} ms"],
    dimensions: "{n} numbers", dimensions_drawn: "{n} numbers, the first {drawn} drawn", pieces: "{n} tokens", gap: "Gap", probability: "probability", perplexity: "perplexity", pseudo_perplexity: "pseudo-perplexity", tokens: "tokens", no_answer: "No answer in this context.",
    nothing: "No entity was found.", cut: "Longer than the model, and cut.", hover: "Point at a token, or move through them with Tab, to see what it looks at.",
    looks_at: "looks at", unreachable: "The server cannot be reached.", curl: "curl", python: "Python", shell: "Command line; MODEL is the model's folder", weights_about: "How much each row looks at each column.", score: "log-probability",
    verbs: { embed: "Vectors", similarity: "Similarity", search: "Search", fill: "Fill in", score: "Score", classify: "Classify",
      regress: "Rate", tag: "Tag", answer: "Answer", choose: "Choose", predict: "Predict", translate: "Translate", generate: "Write", tokenize: "Tokens", attention: "Attention" },
    about: { embed: "A vector for each text.", similarity: "How alike are these texts? Cosines of their vectors.",
      search: "The lines nearest to a query.", fill: "The likeliest words for every [MASK].", score: "How natural does the model find each text? The lower, the more natural.",
      classify: "A label, and how sure the model is.", regress: "A number for a text or a pair.", tag: "Entities, coloured in the text.",
      answer: "The answer to a question, marked in its context.", choose: "Which ending goes on best?", predict: "What the model says of a text, as it is.",
      translate: "The best translations, and what each piece looked at.", generate: "How a prompt goes on, as it is written.", tokenize: "The pieces that the model sees, with their ids.",
      attention: "What each token looks at, by layer and head." },
    about_pair: { score: "How probable is this translation of the source?", attention: "What each piece of the source and of its translation looks at, by layer and head." },
    attentions: { encoder: "the source to itself", decoder: "the translation to its past", cross: "the translation to the source" }, which: "Attention",
  },
  zh: {
    skip: "跳到文本", model: "模型", routes: "接口", other_language: "English", same_call: "用代码调用", what: "功能", answer: "结果",
    key: "服务器密钥", go: "确定", run: "运行", running: "正在运行…", loading: "正在加载模型…", stop: "停止", ready: "结果已显示。", copy: "复制", copied: "已复制",
    text: "文本", texts: "文本，每行一条", pair: "第二段文本（选填）", second: "第二段文本", question: "问题", context: "上下文",
    choices: "选项，每行一个", prompt: "开头", max_tokens: "词元上限", temperature: "温度（0：取最可能的）", query: "查询", source: "原文", translation: "译文", top: "数量",
    beam: "束宽", n_best: "译文条数", layer: "层", head: "注意力头", all_heads: "所有头的平均", pooling: "池化",
    own: "模型默认", clocks: ["排队 {queue} 毫秒", "分词 {tokenize} 毫秒", "计算 {compute} 毫秒", "往返 {total} 毫秒"],
    dimensions: "{n} 维", dimensions_drawn: "{n} 维，图中为前 {drawn} 维", pieces: "共 {n} 个词元", gap: "空", probability: "概率", perplexity: "困惑度", pseudo_perplexity: "伪困惑度", tokens: "词元", no_answer: "上下文中没有答案。",
    nothing: "没有找到实体。", cut: "文本超过模型的长度上限，已截断。", hover: "把鼠标移到词元上，或用 Tab 键移动，查看它关注什么。",
    looks_at: "关注：", unreachable: "无法连接服务器。", curl: "curl", python: "Python", shell: "命令行（MODEL 为模型文件夹）", weights_about: "每一行对每一列的关注程度。", score: "对数概率",
    verbs: { embed: "向量", similarity: "相似度", search: "搜索", fill: "填空", score: "评分", classify: "分类", regress: "回归",
      tag: "标注", answer: "问答", choose: "选择", predict: "预测", translate: "翻译", generate: "续写", tokenize: "词元", attention: "注意力" },
    about: { embed: "每段文本一个向量。", similarity: "这些文本有多相似？比较向量的余弦。", search: "找出与查询最接近的行。",
      fill: "每个 [MASK] 处最可能的词。", score: "模型觉得每段文本有多自然？数值越低越自然。", classify: "给出标签，以及模型的把握。",
      regress: "为一段或一对文本给出一个数。", tag: "在文本中标出实体。", answer: "在上下文中标出问题的答案。", choose: "哪个选项接得最通顺？", predict: "模型对文本的回答，原样显示。",
      translate: "最佳译文，以及每个译文片段对应原文的哪里。", generate: "从开头接着写，边写边显示。", tokenize: "模型看到的片段及其编号。", attention: "在各层、各注意力头，每个词元关注什么。" },
    about_pair: { score: "这条译文有多大概率？", attention: "在各层、各注意力头，原文和译文的每个词元关注什么。" },
    attentions: { encoder: "原文对自身", decoder: "译文对前文", cross: "译文对原文" }, which: "注意力",
  },
};

const STARTS = {
  en: { prompt: "Once upon a time", text: "The old miller sold his mill by the river.", start: "The old miller came home late,", mask: "The capital of France is [MASK].",
    texts: "The weather is lovely today.\nIt's so sunny outside!\nHe drove to the stadium.", pair: "The miller has sold his mill.",
    question: "Who wrote Emma?", context: "Emma, a novel about youthful hubris, was written by Jane Austen and published in 1815.",
    choices: "and closed the door behind him.\nand the moon ate a sandwich.", query: "sunny", source: "A dog runs.", translation: "Ein Hund rennt." },
  zh: { prompt: "从前有座山，", text: "老磨坊主在河边卖掉了他的磨坊。", start: "老磨坊主很晚才回到家，", mask: "北京是中国的首[MASK]。", texts: "今天天气很好。\n外面阳光明媚！\n他开车去了体育场。", pair: "磨坊主把磨坊卖了。",
    question: "《红楼梦》的作者是谁？", context: "《红楼梦》是清代作家曹雪芹创作的长篇小说。", choices: "然后关上了身后的门。\n然后月亮吃了一个三明治。",
    query: "阳光", source: "A dog runs.", translation: "一只狗在跑。" },
};

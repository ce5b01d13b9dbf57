/**
 * Names of every script as lower-case Latin letters and digits. Pure, and a function of the text alone: it never asks the
 * machine's locale. A script without a table is kept as it is, so that names in it still equal themselves.
 *
 * Arabic and Hebrew write consonants; what comes out of them has no vowels, and `isVowelless` says so.
 */

export interface LatinText {
  readonly text: string;
  /** A word came from a script that leaves vowels out. */
  readonly isVowelless: boolean;
}

export function toLatin(text: string): LatinText {
  let latinLetters = '';
  let isVowelless = false;
  // The compatibility form first: wide letters, ligatures and presentation forms become the letters that they stand for.
  for (const composedLetter of text.normalize('NFKC').toLowerCase()) {
    if (composedLetter < '\u0080') latinLetters += composedLetter;
    else if (latinLetterTable.has(composedLetter)) latinLetters += latinLetterTable.get(composedLetter)!;
    else if (composedLetter >= '\uac00' && composedLetter < '\ud7a4') latinLetters += ` ${hangulSyllable(composedLetter)} `;
    else for (const decomposedLetter of composedLetter.normalize('NFKD')) latinLetters += latinLetterOf(decomposedLetter);
    if (composedLetter >= '\u0590' && composedLetter < '\u0700') isVowelless = true;
  }
  // A small kana joins the syllable before it, and a sign of Devanagari takes the place of the consonant's own vowel.
  const joinedLatin = latinLetters
    .replaceAll(/(sh|ch|j)i\^y/g, '$1')
    .replaceAll(/i\^y/g, 'y')
    .replaceAll(/a?~/g, '');
  return { text: joinedLatin.replaceAll('^', ''), isVowelless };
}

function latinLetterOf(scriptSymbol: string): string {
  const latinLetters = latinLetterTable.get(scriptSymbol);
  if (latinLetters !== undefined) return latinLetters;
  if (scriptSymbol < '\u0080') return scriptSymbol;
  if (/\p{M}/u.test(scriptSymbol)) return '';
  const hanSyllable = latinHanTable.get(scriptSymbol);
  return hanSyllable === undefined ? scriptSymbol : ` ${hanSyllable} `;
}

/** Pairs of letters and what they become; `_` stands for nothing. */
function latinLettersOf(letterPairs: string): [string, string][] {
  return letterPairs.split(' ').map((letterPair) => {
    const [scriptLetter = '', ...latinRest] = letterPair;
    return [scriptLetter, latinRest.join('').replace('_', '')];
  });
}

const latinLetterTable: ReadonlyMap<string, string> = new Map([
  // Latin letters that have no decomposition.
  ...latinLettersOf('ßss æae œoe øo łl đd ðd þth ħh ıi ŋng ŧt ĸk ſs ƒf əa ɛe ɔo ʼ_ ʹ_ ʺ_ ’_ ‘_ ʻ_ `_ ´_ “_ ”_ –- —- ‐- ‑- ー_'),
  ...latinLettersOf('йy аa бb вv гg дd еe жzh зz иi кk лl мm нn оo пp рr сs тt уu фf хkh цts чch шsh щshch ъ_ ыy ь_ эe юyu яya'),
  ...latinLettersOf('іi єye ґg ўu џdz љlj њnj ћc ђdj јj ѓg ќk ѕdz әa ғg қq ңn өo ұu үu һh'),
  // Greek.
  ...latinLettersOf('αa βv γg δd εe ζz ηi θth ιi κk λl μm νn ξx οo πp ρr σs ςs τt υy φf χch ψps ωo'),
  // Arabic, Persian, Urdu.
  ...latinLettersOf('اa بb تt ثth جj حh خkh دd ذdh رr زz سs شsh صs ضd طt ظz عa غgh فf قq كk کk لl مm نn هh ةa وw يy یy ىa ءa ٱa'),
  ...latinLettersOf('پp چch ژzh گg ٹt ڈd ڑr ےe ہh ھh ںn'),
  // Hebrew.
  ...latinLettersOf('אa בb גg דd הh וv זz חh טt יy כk ךk לl מm םm נn ןn סs עa פp ףp צts ץts קk רr שsh תt'),
  // Georgian and Armenian.
  ...latinLettersOf(
    'აa ბb გg დd ეe ვv ზz თt იi კk ლl მm ნn ოo პp ჟzh რr სs ტt უu ფp ქk ღgh ყq შsh ჩch ცts ძdz წts ჭch ხkh ჯj ჰh',
  ),
  ...latinLettersOf(
    'աa բb գg դd եe զz էe ըe թt ժzh իi լl խkh ծts կk հh ձdz ղgh ճch մm յy նn շsh ոo չch պp ջj ռr սs վv տt րr ցts ւv փp քk օo ֆf',
  ),
  // Devanagari: a consonant carries an a, which a sign behind it takes away.
  ...latinLettersOf(
    'अa आa इi ईi उu ऊu एe ऐai ओo औau कka खkha गga घgha चcha छchha जja झjha टta ठtha डda ढdha णna तta थtha दda धdha नna पpa फpha बba भbha मma यya रra लla वva शsha षsha सsa हha',
  ),
  ...latinLettersOf('ा~a ि~i ी~i ु~u ू~u े~e ै~ai ो~o ौ~au ंn ्~'),
  ...kanaLetters(),
]);

function kanaLetters(): [string, string][] {
  const kanaRows = 'aiueo:あいうえお k:かきくけこ s:さしすせそ t:たちつてと n:なにぬねの h:はひふへほ m:まみむめも r:らりるれろ';
  const voicedKanaRows = 'g:がぎぐげご z:ざじずぜぞ d:だぢづでど b:ばびぶべぼ p:ぱぴぷぺぽ';
  const irregularSyllables: Readonly<Record<string, string>> = {
    si: 'shi',
    ti: 'chi',
    tu: 'tsu',
    hu: 'fu',
    zi: 'ji',
    di: 'ji',
    du: 'zu',
  };
  const singleKana = 'やya ゆyu よyo わwa をo んn っ_ ゃ^ya ゅ^yu ょ^yo';
  const kanaSyllables: [string, string][] = [];
  for (const kanaRow of `${kanaRows} ${voicedKanaRows}`.split(' ')) {
    const [rowHead = '', kanaSymbols = ''] = kanaRow.split(':');
    const rowConsonant = rowHead === 'aiueo' ? '' : rowHead;
    Array.from(kanaSymbols).forEach((symbol, i) => {
      const plainSyllable = rowConsonant + 'aiueo'[i]!;
      kanaSyllables.push([symbol, irregularSyllables[plainSyllable] ?? plainSyllable]);
    });
  }
  for (const kanaPair of singleKana.split(' ')) kanaSyllables.push([kanaPair[0]!, kanaPair.slice(1).replace('_', '')]);
  // Katakana stand 96 code points after hiragana.
  const katakanaTwin = ([symbol, latin]: [string, string]): [string, string] => [
    String.fromCodePoint(symbol.codePointAt(0)! + 0x60),
    latin,
  ];
  return [...kanaSyllables, ...kanaSyllables.map(katakanaTwin)];
}

const hangulLeads = 'g kk n d tt r m b pp s ss _ j jj ch k t p h'.split(' ');
const hangulVowels = 'a ae ya yae eo e yeo ye o wa wae oe yo u wo we wi yu eu ui i'.split(' ');
const hangulTails = 'k kk ks n nj nh t l lk lm lp ls lt lp lh m p ps t t ng t t k t p t'.split(' ');

/** Surnames are written by custom, not by rule. */
const hangulSurnames: ReadonlyMap<string, string> = new Map(
  (
    '김kim 이lee 박park 최choi 정jung 강kang 조cho 임lim 오oh 신shin 권kwon 안ahn 전jeon 고ko 문moon 허huh 유yoo 심shim 노roh 곽kwak ' +
    '성sung 주joo 우woo 구koo 영young 현hyun 경kyung 선sun 희hee 수soo 준jun 병byung 명myung 승seung'
  )
    .split(' ')
    .map((surnamePair) => [surnamePair[0]!, surnamePair.slice(1)]),
);

/** The Unicode formula: lead × 588 + vowel × 28 + tail. */
function hangulSyllable(hangulSymbol: string): string {
  const syllableNumber = hangulSymbol.codePointAt(0)! - 0xac00;
  const tailNumber = syllableNumber % 28;
  const speltSyllable =
    hangulLeads[Math.floor(syllableNumber / 588)]! +
    hangulVowels[Math.floor((syllableNumber % 588) / 28)]! +
    (tailNumber === 0 ? '' : hangulTails[tailNumber - 1]!);
  return hangulSurnames.get(hangulSymbol) ?? speltSyllable.replace('_', '');
}

/**
 * Characters that names of people, places and companies are written with, by their syllable without tones. A character that
 * is not here stands for itself.
 */
const hanSyllables =
  'ai艾爱 an安 ao敖 bai白百柏 ban班 bang邦 bao包宝鲍保 bei北贝 ben本 bi毕碧 bian边卞 bin斌彬宾滨 bing冰兵炳 bo波博伯薄 bu卜 cai蔡才财彩 ' +
  'can灿 cang苍 cao曹 cen岑 chai柴 chan产 chang常昌长畅 chao超朝晁 che车 chen陈晨辰沉 cheng程成诚城承 chi池赤 chong崇冲 chu楚储初 ' +
  'chuan川船传 chun春纯 ci慈 cong聪丛 cui崔翠 da大达 dai戴代 dan丹 dang党 dao道 de德得 deng邓登 di迪地狄 dian电 ding丁定鼎 dong董东冬 ' +
  'du杜都 duan段 dun敦 e鄂 en恩 er尔 fa发法 fan范凡樊帆 fang方芳房 fei飞费菲 fen芬 feng冯峰丰凤风锋枫 fu福付傅富夫孚甫 gan甘干 gang刚钢港 ' +
  'gao高 ge葛戈歌 gen根 geng耿 gong龚公工宫 gu顾古谷 guan关管 guang光广 gui贵桂 guo郭国 hai海 han韩汉翰寒 hang航杭 hao浩郝豪昊 he何和贺河鹤 ' +
  'hei黑 heng恒衡 hong洪红宏鸿虹 hou侯后 hu胡虎湖沪 hua华花化 huai怀 huan欢焕环 huang黄煌 hui辉慧惠会汇 huo霍火 ji季吉纪基姬集计机际 jia贾家佳嘉加 ' +
  'jian建健剑简坚 jiang江蒋姜将疆 jiao焦娇 jie杰洁捷 jin金锦进晋近今津 jing静晶京景靖敬经 jiu九久 ju菊居 juan娟 jun军君俊骏钧 kai凯开 kang康 ' +
  'ke柯科克可 kong孔空控 kuan宽 kun坤昆 lai赖来 lan兰蓝岚 lang郎朗 lao劳 lei雷蕾磊 leng冷 li李黎丽力利立莉礼理厉 lian连莲联廉 liang梁亮良 ' +
  'liao廖 lie列 lin林琳霖 ling玲凌灵岭 liu刘柳流 long龙隆 lou楼 lu陆鲁路卢露璐 luan栾 lun伦 luo罗洛骆 lv吕绿旅 ma马麻 mai麦 man满曼 mao毛茂 ' +
  'mei梅美媒 meng孟蒙梦 mi米 miao苗 min敏民 ming明鸣铭 mo莫墨 mu穆木牧 na娜那纳 nan南楠 neng能 ni倪尼 nian年 ning宁 niu牛 ou欧 ' +
  'pan潘 pang庞 pei裴沛佩 peng彭鹏朋 pi皮 ping平萍 po坡 pu浦蒲普 qi齐奇琪琦启旗企气汽 qian钱倩前谦 qiang强 qiao乔桥 qin秦琴勤 qing青清庆卿 ' +
  'qiu邱秋丘 qu曲屈 quan全泉权 que阙 ran冉然 rao饶 ren任仁人 ri日 rong荣容蓉融 ru茹如 ruan阮 rui瑞锐睿 run润 sa萨 sai赛 san三 sang桑 sen森 sha沙 ' +
  'shan山珊善单 shang尚上商 shao邵绍少 shen沈申深神慎 sheng盛生胜升圣 shi石史施时世诗士实市 shou寿 shu舒书淑树 shuai帅 shuang双 shui水 shun顺 ' +
  'si司思斯四 song宋松 su苏素 sui隋 sun孙 suo索 ta塔 tai太泰台 tan谭谈坛 tang唐汤 tao陶涛 teng滕腾 ti体 tian田天 tie铁 ting婷庭 tong童通同铜 tu涂图 ' +
  'tun屯 wan万婉 wang王汪旺望网 wei魏伟韦卫薇威维为微 wen文温闻 weng翁 wu吴武伍五午务物 xi西希习席锡喜熙系 xia夏霞 xian贤先鲜 xiang向祥香翔项湘 ' +
  'xiao肖小晓萧孝笑 xie谢协 xin新欣鑫心辛信馨 xing星邢兴行 xiong熊雄 xiu秀修 xu徐许旭绪 xuan宣轩萱 xue薛雪学 xun勋迅 ya亚雅 yan严颜燕艳岩研炎闫 ' +
  'yang杨阳洋扬羊 yao姚瑶药 ye叶业 yi易毅怡仪一义益艺伊忆逸 yin尹银印音 ying英莹颖应盈 yong永勇雍用 you尤友游有 yu于余玉宇雨俞育郁瑜语渔 yuan袁元媛园远源 ' +
  'yue岳月越悦 yun云芸运韵 zai再 zan赞 zang臧 zao早 ze泽 zeng曾增 zha查 zhan詹展占 zhang张章 zhao赵兆 zhe哲浙 zhen甄珍真振震镇 zheng郑正政 zhi志智芝之致 ' +
  'zhong钟中忠仲重 zhou周舟洲 zhu朱竹祝珠株主 zhuang庄 zhuo卓 zi子紫资 zong宗 zou邹 zu祖 zuo左 chen陳 zhang張 liu劉 huang黃 wu吳 zhao趙 sun孫 ' +
  'ma馬 zhu諸 lin臨 guo國 luo羅 zheng鄭 liang樑 xie謝 han韓 deng鄧 feng馮 zeng増 xu許 jiang蔣 shen瀋 wei偉衛 hua華 dong東 long龍 feng鳳豐 yun雲 ' +
  'lu陸盧 jie傑潔 qiang強 guang廣 ye葉 yang陽楊 xue學 li麗 mei貿 mao贸 yi易 jun軍 gang剛 jian劍 ming銘 hong鴻 fei飛 qing慶 rong榮 fu複复 xing興 tong銅 gu顧 jing經';

const latinHanTable: ReadonlyMap<string, string> = new Map(
  hanSyllables.split(' ').flatMap((hanEntry) => {
    const pinyinSyllable = /^[a-z]+/.exec(hanEntry)![0];
    return Array.from(hanEntry.slice(pinyinSyllable.length), (hanSymbol): [string, string] => [hanSymbol, pinyinSyllable]);
  }),
);

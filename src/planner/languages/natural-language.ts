/**
 * Plain questions to statements, by their forms alone. Source: specification, "Search", natural language. A recognised form
 * without a subject is refused, and so is a narrowing phrase that is not understood: nothing is ever guessed. Quoted text is
 * taken as a name unchanged.
 */
import { ServiceError } from '../../errors.ts';

export interface Translated {
  readonly intent: 'path' | 'ownership' | 'sanctions' | 'count' | 'browse' | 'model';
  readonly sql: string;
}

/** A question without the phrases around its form. */
interface PlainQuestion {
  /** Single spaces; each quoted name is a mark. */
  readonly text: string;
  readonly quoted: readonly string[];
  /** How many edges or levels it goes at most. */
  readonly hops: number | null;
  /** The instant that it is about. */
  readonly asOf: string | null;
}

interface QuestionForm {
  readonly intent: Exclude<Translated['intent'], 'model' | 'browse' | 'count'>;
  /** Recognises the intent by the beginning of the text. */
  opens(text: string): boolean;
  /** The names that the question is about; null where there are none. */
  names(plainTypeName: PlainQuestion): readonly string[] | null;
  readonly takes: { readonly hops: boolean; readonly asOf: boolean };
  statement(names: readonly string[], plainTypeName: PlainQuestion): string;
}

const questionForms: readonly QuestionForm[] = [
  {
    intent: 'path',
    opens: (questionText) => containsInOrder(questionText, /\bpaths?\b/i, /\b(?:between|from)\b/i),
    names: (plain) => namePair(plain, / between /i, ' and ') ?? namePair(plain, / from /i, ' to '),
    takes: { hops: true, asOf: true },
    statement: ([pathFrom, pathTo], { hops, asOf }) =>
      `PATHS_BETWEEN(${sqlTextLiteral(pathFrom!)}, ${sqlTextLiteral(pathTo!)}, MAX_HOPS => ${hops ?? 5})${asOf === null ? '' : ` AS OF '${asOf}'`}`,
  },
  {
    intent: 'ownership',
    opens: (questionText) => /\bownership chain\b|\bwho owns\b|\bbeneficial owners?\b/i.test(questionText),
    names: (plain) => subjectBehind(plain, /\bownership chain (?:of|for) |\bwho owns |\bbeneficial owners? of /i),
    takes: { hops: true, asOf: false },
    statement: ([company], { hops }) => `BENEFICIAL_OWNERSHIP_CHAIN(${sqlTextLiteral(company!)}, MAX_DEPTH => ${hops ?? 5})`,
  },
  {
    intent: 'sanctions',
    opens: (questionText) =>
      /\bsanctions? screen\b|\bsanctioned\b|\bsanctions? lists?$/i.test(questionText) ||
      containsInOrder(questionText, /\bscreen\b/i, /\bsanctions?\b/i),
    names: (plain) =>
      subjectBehind(plain, /\bsanctions? screen (?:of |for )?/i) ??
      (isSanctioned.test(plain.text) ? subjectBehind({ ...plain, text: plain.text.replace(isSanctioned, '') }, /\bis /i) : null),
    takes: { hops: false, asOf: false },
    statement: ([party]) => `SANCTIONS_SCREEN(${sqlTextLiteral(party!)}, THRESHOLD => 0.85)`,
  },
];

const isSanctioned = / (?:sanctioned|on (?:a|any|the) sanctions? lists?)$/i;

/** `typeNames`: names that the caller may use. Throws REL_UNPROCESSABLE for questions that can't be translated. */
export function translate(question: string, typeNames: readonly string[]): Translated {
  const parsed = parsePlain(question);
  const questionForm = questionForms.find(({ opens }) => opens(parsed.text));
  if (questionForm !== undefined) return { intent: questionForm.intent, sql: translatedStatement(questionForm, parsed) };
  const countedName = countedType(parsed.text);
  if (countedName !== null) {
    const namedType = typeNames.find((namedTypeName) => singularForms(countedName.replaceAll(' ', '')).has(plain(namedTypeName)));
    if (namedType === undefined) throw untranslatable('"how many" counts all rows of a type: name it as list_entity_types does');
    refuseNarrowed(parsed, { hops: false, asOf: true });
    const asOfTime = parsed.asOf === null ? 'CURRENT' : `'${parsed.asOf}'`;
    return { intent: 'count', sql: `SELECT COUNT(*) AS count FROM ${quotedTypeName(namedType)} AS OF ${asOfTime}` };
  }
  const type = typeInQuestion(question, typeNames);
  if (type === undefined) throw untranslatable('name a type as list_entity_types does');
  return { intent: 'browse', sql: `SELECT * FROM ${quotedTypeName(type)} LIMIT 50` };
}

export function untranslatable(why: string): ServiceError {
  return new ServiceError('REL_UNPROCESSABLE', `could not translate the question: ${why}`);
}

function translatedStatement(questionForm: QuestionForm, plain: PlainQuestion): string {
  refuseNarrowed(plain, questionForm.takes);
  const subjectNames = questionForm.names(plain);
  const spokenNames = subjectNames?.map((subjectName) =>
    quotedNameMark.test(subjectName) ? plain.quoted[Number(subjectName.slice(1, -1))]! : subjectName,
  );
  const isWhole = (name: string): boolean =>
    name.trim() !== '' && !name.includes('\0') && !/ (?:from|between|to) \d{4}\b/i.test(name);
  if (spokenNames?.every(isWhole) !== true) {
    throw untranslatable(`this asks for ${questionForm.intent}, but its subject is not clear: put names in quotes`);
  }
  return questionForm.statement(spokenNames, plain);
}

/** Whether the one is there, and the other behind it. */
function containsInOrder(questionText: string, firstPattern: RegExp, secondPattern: RegExp): boolean {
  const firstMatch = questionText.search(firstPattern);
  return firstMatch >= 0 && secondPattern.test(questionText.slice(firstMatch));
}

const quotedNameMark = /^\0\d+\0$/;
const quotedNamePattern =
  /"([^"]{1,200})"|“([^”]{1,200})”|‘([^’]{1,200})’|(?<![\p{L}\p{N}])'((?:[^']|'(?=[\p{L}\p{N}])){1,200})'(?![\p{L}\p{N}])/gu;
/** Characters at the end of a question that may stand around its form. */
const questionEndMax = 200;
const numberWords = 'one two three four five six seven eight nine ten'.split(' ');
const countPattern = `(\\d{1,6}|${numberWords.join('|')})`;
const boundPattern = '(?:(?:at most|max(?:imum)?(?: of)?|up to|no more than|not more than|(fewer than|less than)) )?';
const edgesPattern = '(?:hops?|steps?|edges?|links?|levels?|degrees?(?: of separation)?)';
/** At the end, or in front of the subject. */
const hopsPattern = `(?:(?:and )?(?:with(?:in)?|in|of|over|using) )?(?:a )?${boundPattern}${countPattern}[ -]${edgesPattern}(?: or (?:fewer|less)| at most| max(?:imum)?)?`;
const questionEndings: readonly (readonly [RegExp, (match: RegExpExecArray) => Partial<PlainQuestion>])[] = [
  [/[ ,;:.!?]+$/, () => ({})],
  [/[ ,]+(?:please|pls|thanks|thank you)$/i, () => ({})],
  [new RegExp(`[ ,]+${hopsPattern}$`, 'i'), hopCount],
  [/[ ,]+(?:and )?as of (\d{4}-\d\d-\d\d(?:T\d\d:\d\d:\d\d(?:\.\d+)?Z)?)$/i, ([, instant]) => ({ asOf: instant! })],
];
const hopsInFront = new RegExp(`(paths?),? ${hopsPattern}(?= (?:between|from) )`, 'i');
/** Words of time, of counting and of choosing: they must be neither ignored nor taken into a name. */
const narrowingWords =
  /(?:^|[ ,])(?:since|before|after|until|till|during|as of|as at|yesterday|today|tomorrow|ago|(?:in|by|on) \d{4}\b|(?:last|this|past) (?:year|month|week|day)s?|via|through|excluding|except|with|without|using|where|whose|that|which|hops?|only)(?=$|[ ,])/i;

function parsePlain(question: string): PlainQuestion {
  const quoted: string[] = [];
  const text = question
    .replaceAll('\0', ' ')
    .replaceAll(
      quotedNamePattern,
      (_, ...groups: string[]) => `\0${quoted.push(groups.slice(0, 4).find((each) => each !== undefined)!) - 1}\0`,
    )
    .replaceAll(/\s+/g, ' ')
    .trim();
  let plain: PlainQuestion = { text, quoted, hops: null, asOf: null };
  for (let isDone = false; !isDone; ) {
    isDone = true;
    for (const [pattern, read] of questionEndings) {
      const from = Math.max(0, plain.text.length - questionEndMax);
      const match = pattern.exec(plain.text.slice(from));
      if (match === null) continue;
      plain = { ...plain, text: plain.text.slice(0, from + match.index), ...read(match) };
      isDone = false;
    }
  }
  const prefixMatch = hopsInFront.exec(plain.text);
  if (prefixMatch === null) return plain;
  const [, word = '', ...rest] = prefixMatch;
  const around = plain.text.slice(0, prefixMatch.index) + word + plain.text.slice(prefixMatch.index + prefixMatch[0].length);
  return { ...plain, text: around, ...hopCount(['', ...rest] as unknown as RegExpExecArray) };
}

function hopCount([, fewerThan, hopCount]: RegExpExecArray): Partial<PlainQuestion> {
  const hopNumber = numberWords.indexOf(hopCount!.toLowerCase()) + 1 || Number(hopCount);
  return { hops: fewerThan === undefined ? hopNumber : hopNumber - 1 };
}

function refuseNarrowed({ text, hops, asOf }: PlainQuestion, formTakes: QuestionForm['takes']): void {
  const [narrowingWord] = narrowingWords.exec(text) ?? [];
  if (narrowingWord !== undefined) {
    const understoodForms = "'within 3 hops' and 'as of 2024-01-31' are understood; a name may stand in quotes";
    throw untranslatable(`${JSON.stringify(narrowingWord.trim())} is not understood here: ${understoodForms}`);
  }
  if (hops !== null && !formTakes.hops) throw untranslatable('a number of hops is not understood here');
  if (hops !== null && (hops < 1 || hops > 10)) throw untranslatable('a path has from 1 to 10 hops');
  if (asOf !== null && !formTakes.asOf) throw untranslatable('an instant is not understood here');
}

/** Two names; none where it could be parted in more than one way. */
function namePair({ text }: PlainQuestion, pairOpening: RegExp, pairSeparator: string): readonly string[] | null {
  const match = pairOpening.exec(text);
  if (match === null) return null;
  const pairText = text.slice(match.index + match[0].length);
  const pairNames = pairText.split(new RegExp(pairSeparator, 'i'));
  if (pairNames.length === 2) return pairNames.map((pairName) => pairName.trim());
  // A quoted name is whole.
  if (pairNames.length > 2 && quotedNameMark.test(pairNames[0]!))
    return [pairNames[0]!, pairNames.slice(1).join(pairSeparator).trim()];
  if (pairNames.length > 2 && quotedNameMark.test(pairNames.at(-1)!))
    return [pairNames.slice(0, -1).join(pairSeparator).trim(), pairNames.at(-1)!];
  return null;
}

function subjectBehind({ text }: PlainQuestion, opens: RegExp): readonly string[] | null {
  const match = opens.exec(text);
  return match === null ? null : [text.slice(match.index + match[0].length).trim()];
}

/** The thing that is counted; null where the question asks for no number. */
function countedType(questionText: string): string | null {
  const match = /\b(?:how many|(?:the )?(?:total )?number of|count(?: of)?(?: all)?) ([^]*)$/i.exec(questionText);
  if (match === null) return null;
  const countEnding =
    / (?:are there|are (?:known|stored|recorded)|do (?:we|you|i) (?:have|know)|exist)(?: in total| altogether| overall)?$/i;
  return match[1]!
    .replace(countEnding, '')
    .replace(/ (?:in total|altogether|overall)$/i, '')
    .replace(/^(?:the|all|all the|different) /i, '')
    .replace(/^(?:rows|records) (?:of|in) (?:type )?/i, '')
    .replace(/ (?:rows|records)$/i, '')
    .toLowerCase();
}

/** The longest type name among the words, in any case, as one word or several, singular or plural. */
function typeInQuestion(question: string, typeNames: readonly string[]): string | undefined {
  const questionWords = question.toLowerCase().match(/[\p{L}\p{N}_]+/gu) ?? [];
  const phrases = new Set<string>();
  for (let firstWord = 0; firstWord < questionWords.length; firstWord++) {
    let joinedWords = '';
    for (let lastWord = firstWord; lastWord < Math.min(questionWords.length, firstWord + typeWordsMax); lastWord++) {
      joinedWords += questionWords[lastWord]!;
      for (const singularForm of singularForms(joinedWords)) phrases.add(singularForm);
    }
  }
  const namedTypes = typeNames.filter((type) => phrases.has(plain(type)));
  return namedTypes.sort((leftType, rightType) => rightType.length - leftType.length || (leftType < rightType ? -1 : 1))[0];
}

const typeWordsMax = 5;

function plain(type: string): string {
  return type.toLowerCase().replaceAll('_', '');
}

/** Endings of plurals, and those of their singulars. */
const pluralEndings: readonly (readonly [plural: string, singular: string])[] = [
  ['s', ''],
  ['es', ''],
  ['ies', 'y'],
  ['ves', 'f'],
  ['ves', 'fe'],
  ['people', 'person'],
  ['men', 'man'],
  ['children', 'child'],
  ['mice', 'mouse'],
  ['feet', 'foot'],
  ['teeth', 'tooth'],
  ['geese', 'goose'],
  ['oxen', 'ox'],
  ['ices', 'ex'],
  ['ices', 'ix'],
  ['ses', 'sis'],
  ['zzes', 'z'],
  ['eria', 'erion'],
  ['mena', 'menon'],
  ['ia', 'ium'],
  ['ata', 'atum'],
  ['ni', 'nus'],
  ['li', 'lus'],
];

/** A word as written, and its possible singulars. */
function singularForms(typeWord: string): ReadonlySet<string> {
  const ownForm = plain(typeWord);
  const singularTypes = pluralEndings.flatMap(([pluralEnding, singularEnding]) =>
    ownForm.endsWith(pluralEnding) ? [ownForm.slice(0, -pluralEnding.length) + singularEnding] : [],
  );
  return new Set([ownForm, ...singularTypes]);
}

function quotedTypeName(type: string): string {
  return `"${type.replaceAll('"', '""')}"`;
}

function sqlTextLiteral(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}

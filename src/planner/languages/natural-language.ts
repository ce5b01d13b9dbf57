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

interface Form {
  readonly intent: Exclude<Translated['intent'], 'model' | 'browse' | 'count'>;
  /** Recognises the intent by the beginning of the text. */
  opens(text: string): boolean;
  /** The names that the question is about; null where there are none. */
  names(plain: PlainQuestion): readonly string[] | null;
  readonly takes: { readonly hops: boolean; readonly asOf: boolean };
  statement(names: readonly string[], plain: PlainQuestion): string;
}

const forms: readonly Form[] = [
  {
    intent: 'path',
    opens: (text) => isIn(text, /\bpaths?\b/i, /\b(?:between|from)\b/i),
    names: (plain) => pair(plain, / between /i, ' and ') ?? pair(plain, / from /i, ' to '),
    takes: { hops: true, asOf: true },
    statement: ([from, to], { hops, asOf }) =>
      `PATHS_BETWEEN(${literal(from!)}, ${literal(to!)}, MAX_HOPS => ${hops ?? 5})${asOf === null ? '' : ` AS OF '${asOf}'`}`,
  },
  {
    intent: 'ownership',
    opens: (text) => /\bownership chain\b|\bwho owns\b|\bbeneficial owners?\b/i.test(text),
    names: (plain) => subjectBehind(plain, /\bownership chain (?:of|for) |\bwho owns |\bbeneficial owners? of /i),
    takes: { hops: true, asOf: false },
    statement: ([company], { hops }) => `BENEFICIAL_OWNERSHIP_CHAIN(${literal(company!)}, MAX_DEPTH => ${hops ?? 5})`,
  },
  {
    intent: 'sanctions',
    opens: (text) =>
      /\bsanctions? screen\b|\bsanctioned\b|\bsanctions? lists?$/i.test(text) || isIn(text, /\bscreen\b/i, /\bsanctions?\b/i),
    names: (plain) =>
      subjectBehind(plain, /\bsanctions? screen (?:of |for )?/i) ??
      (isSanctioned.test(plain.text) ? subjectBehind({ ...plain, text: plain.text.replace(isSanctioned, '') }, /\bis /i) : null),
    takes: { hops: false, asOf: false },
    statement: ([party]) => `SANCTIONS_SCREEN(${literal(party!)}, THRESHOLD => 0.85)`,
  },
];

const isSanctioned = / (?:sanctioned|on (?:a|any|the) sanctions? lists?)$/i;

/** `types`: names that the caller may use. Throws REL_UNPROCESSABLE for questions that can't be translated. */
export function translate(question: string, types: readonly string[]): Translated {
  const parsed = parsePlain(question);
  const form = forms.find(({ opens }) => opens(parsed.text));
  if (form !== undefined) return { intent: form.intent, sql: statementOf(form, parsed) };
  const counted = countedOf(parsed.text);
  if (counted !== null) {
    const type = types.find((each) => namesOf(counted.replaceAll(' ', '')).has(plain(each)));
    if (type === undefined) throw untranslatable('"how many" counts all rows of a type: name it as list_entity_types does');
    refuseNarrowed(parsed, { hops: false, asOf: true });
    const time = parsed.asOf === null ? 'CURRENT' : `'${parsed.asOf}'`;
    return { intent: 'count', sql: `SELECT COUNT(*) AS count FROM ${quotedName(type)} AS OF ${time}` };
  }
  const type = typeNamed(question, types);
  if (type === undefined) throw untranslatable('name a type as list_entity_types does');
  return { intent: 'browse', sql: `SELECT * FROM ${quotedName(type)} LIMIT 50` };
}

export function untranslatable(why: string): ServiceError {
  return new ServiceError('REL_UNPROCESSABLE', `could not translate the question: ${why}`);
}

function statementOf(form: Form, plain: PlainQuestion): string {
  refuseNarrowed(plain, form.takes);
  const names = form.names(plain);
  const spoken = names?.map((name) => (mark.test(name) ? plain.quoted[Number(name.slice(1, -1))]! : name));
  const isWhole = (name: string): boolean =>
    name.trim() !== '' && !name.includes('\0') && !/ (?:from|between|to) \d{4}\b/i.test(name);
  if (spoken?.every(isWhole) !== true) {
    throw untranslatable(`this asks for ${form.intent}, but its subject is not clear: put names in quotes`);
  }
  return form.statement(spoken, plain);
}

/** Whether the one is there, and the other behind it. */
function isIn(text: string, first: RegExp, second: RegExp): boolean {
  const at = text.search(first);
  return at >= 0 && second.test(text.slice(at));
}

const mark = /^\0\d+\0$/;
const quotes =
  /"([^"]{1,200})"|“([^”]{1,200})”|‘([^’]{1,200})’|(?<![\p{L}\p{N}])'((?:[^']|'(?=[\p{L}\p{N}])){1,200})'(?![\p{L}\p{N}])/gu;
/** Characters at the end of a question that may stand around its form. */
const endMax = 200;
const spellings = 'one two three four five six seven eight nine ten'.split(' ');
const count = `(\\d{1,6}|${spellings.join('|')})`;
const bound = '(?:(?:at most|max(?:imum)?(?: of)?|up to|no more than|not more than|(fewer than|less than)) )?';
const edges = '(?:hops?|steps?|edges?|links?|levels?|degrees?(?: of separation)?)';
/** At the end, or in front of the subject. */
const within = `(?:(?:and )?(?:with(?:in)?|in|of|over|using) )?(?:a )?${bound}${count}[ -]${edges}(?: or (?:fewer|less)| at most| max(?:imum)?)?`;
const ends: readonly (readonly [RegExp, (match: RegExpExecArray) => Partial<PlainQuestion>])[] = [
  [/[ ,;:.!?]+$/, () => ({})],
  [/[ ,]+(?:please|pls|thanks|thank you)$/i, () => ({})],
  [new RegExp(`[ ,]+${within}$`, 'i'), hopsOf],
  [/[ ,]+(?:and )?as of (\d{4}-\d\d-\d\d(?:T\d\d:\d\d:\d\d(?:\.\d+)?Z)?)$/i, ([, instant]) => ({ asOf: instant! })],
];
const inFront = new RegExp(`(paths?),? ${within}(?= (?:between|from) )`, 'i');
/** Words of time, of counting and of choosing: they must be neither ignored nor taken into a name. */
const narrows =
  /(?:^|[ ,])(?:since|before|after|until|till|during|as of|as at|yesterday|today|tomorrow|ago|(?:in|by|on) \d{4}\b|(?:last|this|past) (?:year|month|week|day)s?|via|through|excluding|except|with|without|using|where|whose|that|which|hops?|only)(?=$|[ ,])/i;

function parsePlain(question: string): PlainQuestion {
  const quoted: string[] = [];
  const text = question
    .replaceAll('\0', ' ')
    .replaceAll(
      quotes,
      (_, ...groups: string[]) => `\0${quoted.push(groups.slice(0, 4).find((each) => each !== undefined)!) - 1}\0`,
    )
    .replaceAll(/\s+/g, ' ')
    .trim();
  let plain: PlainQuestion = { text, quoted, hops: null, asOf: null };
  for (let isDone = false; !isDone; ) {
    isDone = true;
    for (const [pattern, read] of ends) {
      const from = Math.max(0, plain.text.length - endMax);
      const match = pattern.exec(plain.text.slice(from));
      if (match === null) continue;
      plain = { ...plain, text: plain.text.slice(0, from + match.index), ...read(match) };
      isDone = false;
    }
  }
  const prefixMatch = inFront.exec(plain.text);
  if (prefixMatch === null) return plain;
  const [, word = '', ...rest] = prefixMatch;
  const around = plain.text.slice(0, prefixMatch.index) + word + plain.text.slice(prefixMatch.index + prefixMatch[0].length);
  return { ...plain, text: around, ...hopsOf(['', ...rest] as unknown as RegExpExecArray) };
}

function hopsOf([, fewer, hopCount]: RegExpExecArray): Partial<PlainQuestion> {
  const number = spellings.indexOf(hopCount!.toLowerCase()) + 1 || Number(hopCount);
  return { hops: fewer === undefined ? number : number - 1 };
}

function refuseNarrowed({ text, hops, asOf }: PlainQuestion, takes: Form['takes']): void {
  const [word] = narrows.exec(text) ?? [];
  if (word !== undefined) {
    const known = "'within 3 hops' and 'as of 2024-01-31' are understood; a name may stand in quotes";
    throw untranslatable(`${JSON.stringify(word.trim())} is not understood here: ${known}`);
  }
  if (hops !== null && !takes.hops) throw untranslatable('a number of hops is not understood here');
  if (hops !== null && (hops < 1 || hops > 10)) throw untranslatable('a path has from 1 to 10 hops');
  if (asOf !== null && !takes.asOf) throw untranslatable('an instant is not understood here');
}

/** Two names; none where it could be parted in more than one way. */
function pair({ text }: PlainQuestion, opens: RegExp, between: string): readonly string[] | null {
  const match = opens.exec(text);
  if (match === null) return null;
  const both = text.slice(match.index + match[0].length);
  const parts = both.split(new RegExp(between, 'i'));
  if (parts.length === 2) return parts.map((part) => part.trim());
  // A quoted name is whole.
  if (parts.length > 2 && mark.test(parts[0]!)) return [parts[0]!, parts.slice(1).join(between).trim()];
  if (parts.length > 2 && mark.test(parts.at(-1)!)) return [parts.slice(0, -1).join(between).trim(), parts.at(-1)!];
  return null;
}

function subjectBehind({ text }: PlainQuestion, opens: RegExp): readonly string[] | null {
  const match = opens.exec(text);
  return match === null ? null : [text.slice(match.index + match[0].length).trim()];
}

/** The thing that is counted; null where the question asks for no number. */
function countedOf(text: string): string | null {
  const match = /\b(?:how many|(?:the )?(?:total )?number of|count(?: of)?(?: all)?) ([^]*)$/i.exec(text);
  if (match === null) return null;
  const behindIt =
    / (?:are there|are (?:known|stored|recorded)|do (?:we|you|i) (?:have|know)|exist)(?: in total| altogether| overall)?$/i;
  return match[1]!
    .replace(behindIt, '')
    .replace(/ (?:in total|altogether|overall)$/i, '')
    .replace(/^(?:the|all|all the|different) /i, '')
    .replace(/^(?:rows|records) (?:of|in) (?:type )?/i, '')
    .replace(/ (?:rows|records)$/i, '')
    .toLowerCase();
}

/** The longest type name among the words, in any case, as one word or several, singular or plural. */
function typeNamed(question: string, types: readonly string[]): string | undefined {
  const words = question.toLowerCase().match(/[\p{L}\p{N}_]+/gu) ?? [];
  const phrases = new Set<string>();
  for (let first = 0; first < words.length; first++) {
    let joined = '';
    for (let last = first; last < Math.min(words.length, first + wordsMax); last++) {
      joined += words[last]!;
      for (const form of namesOf(joined)) phrases.add(form);
    }
  }
  const named = types.filter((type) => phrases.has(plain(type)));
  return named.sort((a, b) => b.length - a.length || (a < b ? -1 : 1))[0];
}

const wordsMax = 5;

function plain(type: string): string {
  return type.toLowerCase().replaceAll('_', '');
}

/** Endings of plurals, and those of their singulars. */
const plurals: readonly (readonly [plural: string, singular: string])[] = [
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
function namesOf(word: string): ReadonlySet<string> {
  const own = plain(word);
  const singular = plurals.flatMap(([from, to]) => (own.endsWith(from) ? [own.slice(0, -from.length) + to] : []));
  return new Set([own, ...singular]);
}

function quotedName(type: string): string {
  return `"${type.replaceAll('"', '""')}"`;
}

function literal(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}

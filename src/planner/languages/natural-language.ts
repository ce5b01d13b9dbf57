/**
 * Plain questions to statements, by their forms alone. Source: specification, "Search", natural language. A form that is
 * recognised and lacks what it is about is refused: nothing is ever guessed.
 */
import { ServiceError } from '../../errors.ts';

export interface Translated {
  readonly intent: 'path' | 'ownership' | 'sanctions' | 'browse' | 'model';
  readonly sql: string;
}

interface Form {
  readonly intent: Exclude<Translated['intent'], 'model'>;
  /** Tells the intent, whatever follows. */
  readonly opens: RegExp;
  /** Finds what it is about. */
  readonly about: readonly RegExp[];
  statement(...names: readonly string[]): string;
}

const name = String.raw`["'“‘]?(.+?)["'”’]?`;
const end = String.raw`\s*[?.!]*\s*$`;

const forms: readonly Form[] = [
  {
    intent: 'path',
    opens: /\bpaths?\s+(?:between|from)\b/i,
    about: [
      new RegExp(String.raw`\bpaths?\s+between\s+${name}\s+and\s+${name}${end}`, 'i'),
      new RegExp(String.raw`\bpaths?\s+from\s+${name}\s+to\s+${name}${end}`, 'i'),
    ],
    statement: (from, to) => `PATHS_BETWEEN(${literal(from!)}, ${literal(to!)}, MAX_HOPS => 5)`,
  },
  {
    intent: 'ownership',
    opens: /\bownership\s+chain\b|\bwho\s+owns\b|\bbeneficial\s+owners?\b/i,
    about: [
      new RegExp(String.raw`\bownership\s+chain\s+(?:of|for)\s+${name}${end}`, 'i'),
      new RegExp(String.raw`\bwho\s+owns\s+${name}${end}`, 'i'),
      new RegExp(String.raw`\bbeneficial\s+owners?\s+of\s+${name}${end}`, 'i'),
    ],
    statement: (company) => `BENEFICIAL_OWNERSHIP_CHAIN(${literal(company!)}, MAX_DEPTH => 5)`,
  },
  {
    intent: 'sanctions',
    opens: /\bsanctions?\s+screen\b|\bsanctioned\b|\bscreen\b.*\bsanctions?\b/i,
    about: [
      new RegExp(String.raw`\bsanctions?\s+screen(?:\s+(?:of|for))?\s+${name}${end}`, 'i'),
      new RegExp(String.raw`\bis\s+${name}\s+sanctioned${end}`, 'i'),
    ],
    statement: (party) => `SANCTIONS_SCREEN(${literal(party!)}, THRESHOLD => 0.85)`,
  },
];

/** `types`: names that the asker may name. Throws REL_UNPROCESSABLE for what can't be translated. */
export function translate(question: string, types: readonly string[]): Translated {
  const form = forms.find(({ opens }) => opens.test(question));
  if (form !== undefined) {
    for (const about of form.about) {
      const names = about
        .exec(question)
        ?.slice(1)
        .map((found) => found.trim());
      if (names?.every((found) => found !== '')) return { intent: form.intent, sql: form.statement(...names) };
    }
    throw untranslated(`this asks for ${form.intent}, and what it is about can't be told`);
  }
  const type = typeNamed(question, types);
  if (type === undefined) throw untranslated('name a type, as list_entity_types has it');
  return { intent: 'browse', sql: `SELECT * FROM "${type.replaceAll('"', '""')}" LIMIT 50` };
}

export function untranslated(why: string): ServiceError {
  return new ServiceError('REL_UNPROCESSABLE', `could not translate the question: ${why}`);
}

/** The longest type name among the words, in any case, as one word or several, singular or plural. */
function typeNamed(question: string, types: readonly string[]): string | undefined {
  const words = question.toLowerCase().match(/[\p{L}\p{N}_]+/gu) ?? [];
  const said = new Set<string>();
  for (let first = 0; first < words.length; first++) {
    let joined = '';
    for (let last = first; last < Math.min(words.length, first + wordsMax); last++) {
      joined += words[last]!;
      for (const form of singulars(joined)) said.add(form);
    }
  }
  const named = types.filter((type) => said.has(type.toLowerCase()) || said.has(type.toLowerCase().replaceAll('_', '')));
  return named.sort((a, b) => b.length - a.length || (a < b ? -1 : 1))[0];
}

const wordsMax = 5;

function singulars(word: string): readonly string[] {
  return [
    word,
    ...(word.endsWith('s') ? [word.slice(0, -1)] : []),
    ...(word.endsWith('es') ? [word.slice(0, -2)] : []),
    ...(word.endsWith('ies') ? [`${word.slice(0, -3)}y`] : []),
  ];
}

function literal(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}

/**
 * Texts of Sigma rules into rules that can be compiled. Each document is read by itself: a wrong one spoils no other.
 * Source: Sigma rules specification 2.0, Sigma correlation rules specification 2.0.
 */
import { isAscii } from 'node:buffer';
import { createRequire } from 'node:module';
import { type Condition, countParts, parseCondition } from './sigma-condition.ts';
import { parseCorrelation } from './correlation-rule.ts';
import { type Placeholders, readItem, type Scalar, ValueBudget } from './field-modifiers.ts';
import { bounds, Refusal, type SigmaError } from './rule-refusal.ts';
import { type Level, levels, type LogSource, type SigmaDocument, type SigmaHead } from './sigma-rule.ts';

/** A lexeme that was not seen before takes some microseconds. */
const lexemesBetween = 500;

const require = createRequire(import.meta.url);
type Yaml = typeof import('yaml');
let loaded: Yaml | undefined;
/** Loads the library with the first rule. */
const yaml = (): Yaml => (loaded ??= require('yaml') as Yaml);

/** A refused document shows its id and title where it can be read that far. */
export type Parsed =
  | { readonly document: SigmaDocument; readonly error: null }
  | { readonly document: null; readonly id: string | null; readonly title: string | null; readonly error: SigmaError };

/**
 * The documents of a text or of its bytes, one after the other, since a text may be long; those without content are left out. Markers stand at
 * the beginning of a line, and nowhere else. One that is larger than a rule may be is read as far as it takes to refuse it.
 */
export function* splitDocuments(source: string | Buffer): Generator<string, void> {
  for (let start = 0; start <= source.length; ) {
    const end = nextMark(source, start);
    const document = textOf(source, start, Math.min(end, start + bounds.documentBytes + 5))
      .replace(/^---[^\S\n]*\n/, '')
      .trim();
    // Tested before it gets its line break: a text that is put together is copied when it is read.
    if (hasContent.test(document)) yield `${document}\n`;
    start = end + 1;
  }
}

const hasContent = /^(?!---$|\.\.\.[^\S\n]*$|[^\S\n]*#|[^\S\n]*$|%)/m;

/** Offset of the line break in front of the next document, or of the end. */
function nextMark(source: string | Buffer, start: number): number {
  for (let at = source.indexOf('\n---', start); at >= 0; at = source.indexOf('\n---', at + 1))
    if (at + 4 >= source.length || isBlank(typeof source === 'string' ? source.charCodeAt(at + 4) : source[at + 4]!)) return at;
  return source.length;
}

function textOf(source: string | Buffer, start: number, end: number): string {
  if (typeof source === 'string') return source.slice(start, end);
  const bytes = source.subarray(start, end);
  return bytes.toString(isAscii(bytes) ? 'latin1' : 'utf8');
}

const isBlank = (code: number): boolean => code === 0x20 || (code >= 0x09 && code <= 0x0d);

/** Reads one document in one go: one that was read before, and is small enough. */
export function parseSigma(text: string, placeholders: Placeholders): Parsed {
  const steps = parseInSteps(text, placeholders);
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
  }
}

/** Reads one document, some milliseconds a step. */
export function* parseInSteps(text: string, placeholders: Placeholders): Generator<undefined, Parsed, void> {
  let fields: ReadonlyMap<string, unknown> = new Map();
  try {
    fields = yield* readYaml(text);
    return { document: parseDocument(fields, placeholders), error: null };
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    const showField = (key: string): string | null => {
      const value = fields.get(key);
      return typeof value === 'string' ? value : null;
    };
    return { document: null, id: showField('id'), title: showField('title'), error: error.toError() };
  }
}

function* readYaml(text: string): Generator<undefined, ReadonlyMap<string, unknown>, void> {
  if (Buffer.byteLength(text) > bounds.documentBytes) {
    throw new Refusal('', `a rule has at most ${bounds.documentBytes} bytes`, 'REL_TOO_LARGE');
  }
  checkDepth(text);
  const { parseDocument: parseYaml, isScalar: isYamlScalar, Lexer, LineCounter, visit } = yaml();
  // The library was loaded with the first rule, for some tens of milliseconds.
  yield;
  const lineCounter = new LineCounter();
  let lexemes = 0;
  for (const _ of new Lexer().lex(text)) {
    if (++lexemes > bounds.lexemes) {
      throw new Refusal(
        '',
        `a rule has at most ${bounds.lexemes} lexemes of YAML, and about a fifth of that in values`,
        'REL_TOO_LARGE',
      );
    }
    if (lexemes % lexemesBetween === 0) yield;
  }
  yield;
  const refuseAt = (offset: number, problem: string): Refusal => {
    const { line, col } = lineCounter.linePos(offset);
    return new Refusal('', `YAML, line ${line}, column ${col}: ${problem}`, 'REL_PARSE');
  };
  let value: unknown;
  try {
    const options = { intAsBigInt: true, merge: true, uniqueKeys: false, lineCounter, prettyErrors: false } as const;
    const document = parseYaml(text, { ...options, logLevel: 'silent' });
    const [problem] = document.errors;
    if (problem !== undefined) throw refuseAt(problem.pos[0], problem.message);
    // The library compares each key with all before it.
    visit(document, {
      Map(_key, map) {
        const keys = new Set<string>();
        for (const { key } of map.items) {
          if (!isYamlScalar(key)) continue;
          const name = String(key.value);
          if (name === '<<') continue;
          if (keys.has(name)) throw refuseAt(key.range?.[0] ?? 0, `the key ${JSON.stringify(name)} stands twice`);
          keys.add(name);
        }
      },
    });
    value = document.toJS({ mapAsMap: true, maxAliasCount: bounds.yamlAliases });
  } catch (error) {
    if (error instanceof Refusal) throw error;
    // Aliases beyond the bound, names of anchors that do not exist, and texts that nest too deep for the library.
    if (
      error instanceof ReferenceError ||
      error instanceof RangeError ||
      error instanceof TypeError ||
      error instanceof SyntaxError
    ) {
      throw new Refusal('', `YAML: ${error.message}`, 'REL_PARSE');
    }
    throw error;
  }
  return asMap(value, '', 'a rule');
}

/** Brackets and blocks inside each other, as an upper bound: the library recurses, and is slow where they nest. */
function checkDepth(text: string): void {
  let depth = 0;
  let deepest = 0;
  let deepestLine = 0;
  for (let i = 0, line = true, markers = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code === 0x5b || code === 0x7b) deepest = Math.max(deepest, ++depth);
    else if (code === 0x5d || code === 0x7d) depth = Math.max(0, depth - 1);
    // Block collections can be opened several times in one line: "- - - -" and "? ? ?".
    if (line && (code === 0x2d || code === 0x3f || code === 0x3a) && /\s/.test(text[i + 1] ?? '\n')) {
      deepestLine = Math.max(deepestLine, ++markers);
    } else if (code === 0x0a) {
      line = true;
      markers = 0;
    } else if (code !== 0x20 && code !== 0x09) line = false;
  }
  if (deepestLine > bounds.yamlDepth || (deepest > bounds.yamlDepth && depth > bounds.yamlDepth)) {
    throw new Refusal('', `YAML nests at most ${bounds.yamlDepth} times`, 'REL_TOO_LARGE');
  }
}

function parseDocument(fields: ReadonlyMap<string, unknown>, placeholders: Placeholders): SigmaDocument {
  const head = parseHead(fields);
  if (fields.has('correlation')) return parseCorrelation(head, asMap(fields.get('correlation'), 'correlation', 'a correlation'));
  if (fields.has('filter') && !fields.has('detection')) {
    throw new Refusal('filter', 'filters of Sigma 2.1 (filter) are not implemented');
  }
  const logSource = parseLogSource(fields.get('logsource'));
  const detection = fields.get('detection');
  if (detection === undefined) throw new Refusal('detection', 'a rule has a detection or a correlation');
  return {
    kind: 'rule',
    id: head.id,
    name: head.name,
    title: head.title,
    level: head.level,
    logSource,
    condition: parseDetection(asMap(detection, 'detection', 'a detection'), placeholders),
  };
}

function parseHead(fields: ReadonlyMap<string, unknown>): SigmaHead {
  const text = (key: string, lengthMax: number): string | null => {
    const value = fields.get(key) ?? null;
    if (value === null) return null;
    if (typeof value !== 'string' && typeof value !== 'bigint' && typeof value !== 'number') {
      throw new Refusal(key, `${key} is a text`);
    }
    const shown = String(value).trim();
    if (shown.length > lengthMax) throw new Refusal(key, `${key} has at most ${lengthMax} characters`);
    return shown === '' ? null : shown;
  };
  const title = text('title', 1_024);
  if (title === null) throw new Refusal('title', 'a rule has a title');
  const level = text('level', 64)?.toLowerCase() ?? null;
  if (level !== null && !isLevel(level)) throw new Refusal('level', `level is one of ${levels.join(', ')}`);
  return { id: text('id', 128), name: text('name', 256), title, level };
}

const isLevel = (text: string): text is Level => (levels as readonly string[]).includes(text);

function parseLogSource(value: unknown): LogSource {
  if (value === undefined) throw new Refusal('logsource', 'a rule has a logsource');
  const fields = asMap(value, 'logsource', 'a logsource');
  const text = (key: string): string | null => {
    const fieldValue = fields.get(key) ?? null;
    if (fieldValue === null) return null;
    if (typeof fieldValue !== 'string') throw new Refusal(`logsource.${key}`, `${key} is a text`);
    return fieldValue.trim() === '' ? null : fieldValue.trim().toLowerCase();
  };
  return { product: text('product'), category: text('category'), service: text('service') };
}

function parseDetection(fields: ReadonlyMap<string, unknown>, placeholders: Placeholders): Condition {
  const detections = new Map<string, Condition>();
  const budget = new ValueBudget();
  for (const [name, value] of fields) {
    if (name === 'condition' || name === 'timeframe') continue;
    detections.set(name, readDetection(value, { path: `detection.${name}`, placeholders, budget }, 0));
  }
  if (detections.size === 0) throw new Refusal('detection', 'a detection has at least one search identifier');
  const condition = fields.get('condition');
  if (typeof condition === 'string') return parseCondition(condition, detections);
  if (!Array.isArray(condition) || condition.length === 0) {
    throw new Refusal('detection.condition', 'a condition is a text or a list of texts');
  }
  const of = condition.map((each: unknown) => {
    if (typeof each !== 'string') throw new Refusal('detection.condition', 'a condition is a text or a list of texts');
    return parseCondition(each, detections);
  });
  const whole: Condition = of.length === 1 ? of[0]! : { kind: 'or', of };
  if (of.length > 1 && countParts(whole) > bounds.conditionParts) {
    throw new Refusal('detection.condition', `a condition has at most ${bounds.conditionParts} parts`, 'REL_TOO_LARGE');
  }
  return whole;
}

interface DetectionContext {
  readonly path: string;
  readonly placeholders: Placeholders;
  readonly budget: ValueBudget;
}

/** Maps are linked by AND, lists by OR; values that have no field are keywords. */
function readDetection(value: unknown, context: DetectionContext, depth: number): Condition {
  const { path } = context;
  if (depth > bounds.detectionDepth) throw new Refusal(path, 'lists are nested too deep', 'REL_TOO_LARGE');
  if (value instanceof Map) {
    if (value.size === 0) throw new Refusal(path, 'a search identifier is empty');
    const of = [...(value as Map<unknown, unknown>)].map(([key, of]) => readField(String(key), of, context));
    return of.length === 1 ? of[0]! : { kind: 'and', of };
  }
  if (isScalar(value)) return readItem('', [value], context);
  if (!Array.isArray(value)) throw new Refusal(path, 'a search identifier is a map, a list or a text');
  if (value.length === 0) throw new Refusal(path, 'a search identifier is empty');
  if (value.every(isScalar)) return readItem('', value, context);
  const of = value.map((each: unknown, i) => {
    const { placeholders, budget } = context;
    return readDetection(each, { path: `${path}.${i}`, placeholders, budget }, depth + 1);
  });
  return of.length === 1 ? of[0]! : { kind: 'or', of };
}

function readField(key: string, value: unknown, context: DetectionContext): Condition {
  const { placeholders, budget } = context;
  const path = `${context.path}.${key}`;
  const values: readonly unknown[] = Array.isArray(value) ? value : [value];
  if (!values.every(isScalar))
    throw new Refusal(path, 'the value of a field is a text, a number, true, false, null, or a list of them');
  return readItem(key, values, { path, placeholders, budget });
}

const isScalar = (value: unknown): value is Scalar =>
  value === null || ['string', 'number', 'bigint', 'boolean'].includes(typeof value);

function asMap(value: unknown, path: string, fieldName: string): ReadonlyMap<string, unknown> {
  if (!(value instanceof Map)) throw new Refusal(path, `${fieldName} is a map`);
  return new Map([...(value as Map<unknown, unknown>)].map(([key, each]) => [String(key), each]));
}

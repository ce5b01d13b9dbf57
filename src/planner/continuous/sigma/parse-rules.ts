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
const lexemesAtOnce = 500;

const require = createRequire(import.meta.url);
type YamlLibrary = typeof import('yaml');
let loadedYaml: YamlLibrary | undefined;
/** Loads the library with the first rule. */
const yamlLibrary = (): YamlLibrary => (loadedYaml ??= require('yaml') as YamlLibrary);

/** A refused document shows its id and title where it can be read that far. */
export type Parsed =
  | { readonly document: SigmaDocument; readonly error: null }
  | { readonly document: null; readonly id: string | null; readonly title: string | null; readonly error: SigmaError };

/**
 * The documents of a text or of its bytes, one after the other, since a text may be long; those without content are left out. Markers stand at
 * the beginning of a line, and nowhere else. One that is larger than a rule may be is read as far as it takes to refuse it.
 */
export function* splitDocuments(sigmaSource: string | Buffer): Generator<string, void> {
  for (let documentStart = 0; documentStart <= sigmaSource.length; ) {
    const documentEnd = nextDocumentMark(sigmaSource, documentStart);
    const sigmaDocument = documentText(
      sigmaSource,
      documentStart,
      Math.min(documentEnd, documentStart + bounds.documentBytes + 5),
    )
      .replace(/^---[^\S\n]*\n/, '')
      .trim();
    // Tested before it gets its line break: a text that is put together is copied when it is read.
    if (yamlContent.test(sigmaDocument)) yield `${sigmaDocument}\n`;
    documentStart = documentEnd + 1;
  }
}

const yamlContent = /^(?!---$|\.\.\.[^\S\n]*$|[^\S\n]*#|[^\S\n]*$|%)/m;

/** Offset of the line break in front of the next document, or of the end. */
function nextDocumentMark(sigmaSource: string | Buffer, documentStart: number): number {
  for (
    let markOffset = sigmaSource.indexOf('\n---', documentStart);
    markOffset >= 0;
    markOffset = sigmaSource.indexOf('\n---', markOffset + 1)
  )
    if (
      markOffset + 4 >= sigmaSource.length ||
      isYamlBlank(typeof sigmaSource === 'string' ? sigmaSource.charCodeAt(markOffset + 4) : sigmaSource[markOffset + 4]!)
    )
      return markOffset;
  return sigmaSource.length;
}

function documentText(sigmaSource: string | Buffer, start: number, end: number): string {
  if (typeof sigmaSource === 'string') return sigmaSource.slice(start, end);
  const documentBytes = sigmaSource.subarray(start, end);
  return documentBytes.toString(isAscii(documentBytes) ? 'latin1' : 'utf8');
}

const isYamlBlank = (characterCode: number): boolean =>
  characterCode === 0x20 || (characterCode >= 0x09 && characterCode <= 0x0d);

/** Reads one document in one go: one that was read before, and is small enough. */
export function parseSigma(sigmaText: string, placeholders: Placeholders): Parsed {
  const parsingSteps = parseInSteps(sigmaText, placeholders);
  for (;;) {
    const parsingStep = parsingSteps.next();
    if (parsingStep.done === true) return parsingStep.value;
  }
}

/** Reads one document, some milliseconds a step. */
export function* parseInSteps(sigmaText: string, placeholders: Placeholders): Generator<undefined, Parsed, void> {
  let sigmaFields: ReadonlyMap<string, unknown> = new Map();
  try {
    sigmaFields = yield* readSigmaYaml(sigmaText);
    return { document: parseSigmaDocument(sigmaFields, placeholders), error: null };
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    const showField = (key: string): string | null => {
      const shownField = sigmaFields.get(key);
      return typeof shownField === 'string' ? shownField : null;
    };
    return { document: null, id: showField('id'), title: showField('title'), error: error.toError() };
  }
}

function* readSigmaYaml(yamlText: string): Generator<undefined, ReadonlyMap<string, unknown>, void> {
  if (Buffer.byteLength(yamlText) > bounds.documentBytes) {
    throw new Refusal('', `a rule has at most ${bounds.documentBytes} bytes`, 'REL_TOO_LARGE');
  }
  checkYamlDepth(yamlText);
  const { parseDocument: parseYaml, isScalar: isYamlScalar, Lexer, LineCounter, visit } = yamlLibrary();
  // The library was loaded with the first rule, for some tens of milliseconds.
  yield;
  const lineCounter = new LineCounter();
  let lexemeCount = 0;
  for (const _ of new Lexer().lex(yamlText)) {
    if (++lexemeCount > bounds.lexemes) {
      throw new Refusal(
        '',
        `a rule has at most ${bounds.lexemes} lexemes of YAML, and about a fifth of that in values`,
        'REL_TOO_LARGE',
      );
    }
    if (lexemeCount % lexemesAtOnce === 0) yield;
  }
  yield;
  const refuseYamlAt = (offset: number, problem: string): Refusal => {
    const { line, col } = lineCounter.linePos(offset);
    return new Refusal('', `YAML, line ${line}, column ${col}: ${problem}`, 'REL_PARSE');
  };
  let yamlValue: unknown;
  try {
    const yamlOptions = { intAsBigInt: true, merge: true, uniqueKeys: false, lineCounter, prettyErrors: false } as const;
    const yamlDocument = parseYaml(yamlText, { ...yamlOptions, logLevel: 'silent' });
    const [yamlProblem] = yamlDocument.errors;
    if (yamlProblem !== undefined) throw refuseYamlAt(yamlProblem.pos[0], yamlProblem.message);
    // The library compares each key with all before it.
    visit(yamlDocument, {
      Map(_key, map) {
        const keys = new Set<string>();
        for (const { key } of map.items) {
          if (!isYamlScalar(key)) continue;
          const name = String(key.value);
          if (name === '<<') continue;
          if (keys.has(name)) throw refuseYamlAt(key.range?.[0] ?? 0, `the key ${JSON.stringify(name)} stands twice`);
          keys.add(name);
        }
      },
    });
    yamlValue = yamlDocument.toJS({ mapAsMap: true, maxAliasCount: bounds.yamlAliases });
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
  return sigmaMap(yamlValue, '', 'a rule');
}

/** Brackets and blocks inside each other, as an upper bound: the library recurses, and is slow where they nest. */
function checkYamlDepth(yamlText: string): void {
  let flowDepth = 0;
  let deepestFlow = 0;
  let deepestBlockLine = 0;
  for (let i = 0, isLineStart = true, blockMarkers = 0; i < yamlText.length; i++) {
    const characterCode = yamlText.charCodeAt(i);
    if (characterCode === 0x5b || characterCode === 0x7b) deepestFlow = Math.max(deepestFlow, ++flowDepth);
    else if (characterCode === 0x5d || characterCode === 0x7d) flowDepth = Math.max(0, flowDepth - 1);
    // Block collections can be opened several times in one line: "- - - -" and "? ? ?".
    if (
      isLineStart &&
      (characterCode === 0x2d || characterCode === 0x3f || characterCode === 0x3a) &&
      /\s/.test(yamlText[i + 1] ?? '\n')
    ) {
      deepestBlockLine = Math.max(deepestBlockLine, ++blockMarkers);
    } else if (characterCode === 0x0a) {
      isLineStart = true;
      blockMarkers = 0;
    } else if (characterCode !== 0x20 && characterCode !== 0x09) isLineStart = false;
  }
  if (deepestBlockLine > bounds.yamlDepth || (deepestFlow > bounds.yamlDepth && flowDepth > bounds.yamlDepth)) {
    throw new Refusal('', `YAML nests at most ${bounds.yamlDepth} times`, 'REL_TOO_LARGE');
  }
}

function parseSigmaDocument(sigmaFields: ReadonlyMap<string, unknown>, placeholders: Placeholders): SigmaDocument {
  const sigmaHead = parseSigmaHead(sigmaFields);
  if (sigmaFields.has('correlation'))
    return parseCorrelation(sigmaHead, sigmaMap(sigmaFields.get('correlation'), 'correlation', 'a correlation'));
  if (sigmaFields.has('filter') && !sigmaFields.has('detection')) {
    throw new Refusal('filter', 'filters of Sigma 2.1 (filter) are not implemented');
  }
  const logSource = parseLogSource(sigmaFields.get('logsource'));
  const sigmaDetection = sigmaFields.get('detection');
  if (sigmaDetection === undefined) throw new Refusal('detection', 'a rule has a detection or a correlation');
  return {
    kind: 'rule',
    id: sigmaHead.id,
    name: sigmaHead.name,
    title: sigmaHead.title,
    level: sigmaHead.level,
    logSource,
    condition: parseSigmaDetection(sigmaMap(sigmaDetection, 'detection', 'a detection'), placeholders),
  };
}

function parseSigmaHead(sigmaFields: ReadonlyMap<string, unknown>): SigmaHead {
  const headText = (key: string, lengthMax: number): string | null => {
    const headValue = sigmaFields.get(key) ?? null;
    if (headValue === null) return null;
    if (typeof headValue !== 'string' && typeof headValue !== 'bigint' && typeof headValue !== 'number') {
      throw new Refusal(key, `${key} is a text`);
    }
    const headFieldText = String(headValue).trim();
    if (headFieldText.length > lengthMax) throw new Refusal(key, `${key} has at most ${lengthMax} characters`);
    return headFieldText === '' ? null : headFieldText;
  };
  const title = headText('title', 1_024);
  if (title === null) throw new Refusal('title', 'a rule has a title');
  const level = headText('level', 64)?.toLowerCase() ?? null;
  if (level !== null && !isSigmaLevel(level)) throw new Refusal('level', `level is one of ${levels.join(', ')}`);
  return { id: headText('id', 128), name: headText('name', 256), title, level };
}

const isSigmaLevel = (text: string): text is Level => (levels as readonly string[]).includes(text);

function parseLogSource(logSourceValue: unknown): LogSource {
  if (logSourceValue === undefined) throw new Refusal('logsource', 'a rule has a logsource');
  const logSourceFields = sigmaMap(logSourceValue, 'logsource', 'a logsource');
  const logSourceText = (key: string): string | null => {
    const fieldValue = logSourceFields.get(key) ?? null;
    if (fieldValue === null) return null;
    if (typeof fieldValue !== 'string') throw new Refusal(`logsource.${key}`, `${key} is a text`);
    return fieldValue.trim() === '' ? null : fieldValue.trim().toLowerCase();
  };
  return { product: logSourceText('product'), category: logSourceText('category'), service: logSourceText('service') };
}

function parseSigmaDetection(detectionFields: ReadonlyMap<string, unknown>, placeholders: Placeholders): Condition {
  const searchIdentifiers = new Map<string, Condition>();
  const valueBudget = new ValueBudget();
  for (const [name, value] of detectionFields) {
    if (name === 'condition' || name === 'timeframe') continue;
    searchIdentifiers.set(name, readSearchIdentifier(value, { path: `detection.${name}`, placeholders, budget: valueBudget }, 0));
  }
  if (searchIdentifiers.size === 0) throw new Refusal('detection', 'a detection has at least one search identifier');
  const condition = detectionFields.get('condition');
  if (typeof condition === 'string') return parseCondition(condition, searchIdentifiers);
  if (!Array.isArray(condition) || condition.length === 0) {
    throw new Refusal('detection.condition', 'a condition is a text or a list of texts');
  }
  const listedConditions = condition.map((conditionText: unknown) => {
    if (typeof conditionText !== 'string') throw new Refusal('detection.condition', 'a condition is a text or a list of texts');
    return parseCondition(conditionText, searchIdentifiers);
  });
  const wholeCondition: Condition = listedConditions.length === 1 ? listedConditions[0]! : { kind: 'or', of: listedConditions };
  if (listedConditions.length > 1 && countParts(wholeCondition) > bounds.conditionParts) {
    throw new Refusal('detection.condition', `a condition has at most ${bounds.conditionParts} parts`, 'REL_TOO_LARGE');
  }
  return wholeCondition;
}

interface DetectionContext {
  readonly path: string;
  readonly placeholders: Placeholders;
  readonly budget: ValueBudget;
}

/** Maps are linked by AND, lists by OR; values that have no field are keywords. */
function readSearchIdentifier(detectionValue: unknown, detectionContext: DetectionContext, depth: number): Condition {
  const { path } = detectionContext;
  if (depth > bounds.detectionDepth) throw new Refusal(path, 'lists are nested too deep', 'REL_TOO_LARGE');
  if (detectionValue instanceof Map) {
    if (detectionValue.size === 0) throw new Refusal(path, 'a search identifier is empty');
    const detectionConditions = [...(detectionValue as Map<unknown, unknown>)].map(([key, of]) =>
      readDetectionField(String(key), of, detectionContext),
    );
    return detectionConditions.length === 1 ? detectionConditions[0]! : { kind: 'and', of: detectionConditions };
  }
  if (isDetectionScalar(detectionValue)) return readItem('', [detectionValue], detectionContext);
  if (!Array.isArray(detectionValue)) throw new Refusal(path, 'a search identifier is a map, a list or a text');
  if (detectionValue.length === 0) throw new Refusal(path, 'a search identifier is empty');
  if (detectionValue.every(isDetectionScalar)) return readItem('', detectionValue, detectionContext);
  const of = detectionValue.map((listedDetection: unknown, i) => {
    const { placeholders, budget } = detectionContext;
    return readSearchIdentifier(listedDetection, { path: `${path}.${i}`, placeholders, budget }, depth + 1);
  });
  return of.length === 1 ? of[0]! : { kind: 'or', of };
}

function readDetectionField(fieldKey: string, fieldValue: unknown, detectionContext: DetectionContext): Condition {
  const { placeholders, budget } = detectionContext;
  const detectionPath = `${detectionContext.path}.${fieldKey}`;
  const fieldScalars: readonly unknown[] = Array.isArray(fieldValue) ? fieldValue : [fieldValue];
  if (!fieldScalars.every(isDetectionScalar))
    throw new Refusal(detectionPath, 'the value of a field is a text, a number, true, false, null, or a list of them');
  return readItem(fieldKey, fieldScalars, { path: detectionPath, placeholders, budget });
}

const isDetectionScalar = (detectionScalar: unknown): detectionScalar is Scalar =>
  detectionScalar === null || ['string', 'number', 'bigint', 'boolean'].includes(typeof detectionScalar);

function sigmaMap(mapValue: unknown, path: string, fieldName: string): ReadonlyMap<string, unknown> {
  if (!(mapValue instanceof Map)) throw new Refusal(path, `${fieldName} is a map`);
  return new Map([...(mapValue as Map<unknown, unknown>)].map(([key, mapEntry]) => [String(key), mapEntry]));
}

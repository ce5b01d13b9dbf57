/** Calls to functions of the registry: the signature that fits, and what its arguments become. */
import { didYouMean, type ErrorReason, type ServiceError } from '../../errors.ts';
import type { ColumnType } from '../../log/values/value.ts';
import { errorAt } from '../syntax/error-location.ts';
import type { Expression, Location, StatedType } from '../syntax/statement.ts';
import type { Bound } from './bound-expression.ts';
import type { ValueType } from './value-type.ts';
import { wireTypeOf, withCommonWire } from './postgres-types.ts';
import type { CatalogueCall, CatalogueFunctions } from './functions/catalogue.ts';
import { isDate } from './date-arithmetic.ts';
import { scalarFunction, scalarFunctions } from './functions/all.ts';
import { type CastTarget, casts, isSized, sizedTypes, typeNames, wideCasts, dayText, localText } from './functions/casts.ts';
import { extractFields, extractions, unitNamed } from './functions/instants.ts';
import { anyTyped, fitted } from './functions/graph-values.ts';
import { jsonAsText } from './functions/json.ts';
import { shortBoolean } from './functions/text-building.ts';
import { sameVector, vectorCast } from './functions/vectors.ts';
import { isSame, resolveSignature, type ScalarFunction } from './functions/scalar-function.ts';

type Literal = Extract<Bound, { kind: 'literal' }>;
type Call = Extract<Expression, { kind: 'call' }>;
type CalledBound = Extract<Bound, { kind: 'call' }>;
type Bind = (argument: Expression) => Bound;

export function bindCall(call: Call, bindOperand: Bind, wide = false, catalogue?: CatalogueFunctions): Bound {
  const bind = once(bindOperand);
  const { name, location } = call;
  switch (name) {
    case 'CAST':
      return bindCast(call, bind, wide, catalogue);
    case 'DATE':
    case 'TIMESTAMP':
      // The word before a text, or a call: both are the text as an instant.
      return bindLiteralInstant(call, bind, wide, catalogue !== undefined);
    case 'EXTRACT': {
      const [field, of] = call.arguments;
      if (field?.value.kind !== 'column' || field.name !== 'FIELD' || !of)
        throw errorAt('REL_PARSE', 'EXTRACT(field FROM x)', location);
      const operand = bind(of.value);
      const part: Bound = { kind: 'constant', cell: field.value.name, type: 'string' };
      const ofInterval = wireTypeOf(operand) === 'interval' ? catalogue?.call('date_part', ['text', 'interval']) : null;
      if (ofInterval) return ofCatalogue('EXTRACT', ofInterval, [part, operand], location);
      const extraction = extractions.get(unitNamed(field.value.name));
      if (!extraction) {
        throw errorAt('REL_INVALID', `EXTRACT takes ${extractFields.join(', ')}`, field.value.location);
      }
      return bindSignature(extraction, 'EXTRACT', [asInstantLiteral(operand)], location);
    }
    case 'COALESCE':
      return bindCoalesce(call, bind, catalogue);
  }
  const scalar = scalarFunction(name);
  const ofArrays = catalogue && arrayOperators.has(name) ? arrayCall(call, bind, catalogue) : null;
  if (ofArrays) return ofArrays;
  const timed = catalogue && timeFunctions.has(name) ? timeCall(call, bind, catalogue) : null;
  if (timed) return timed;
  if (!scalar) return catalogueCall(call, bind, catalogue) ?? refuse(unknown(call, bind, catalogue));
  const named = call.arguments.find((each) => each.name !== null);
  if (named) throw errorAt('REL_INVALID', `${name} takes no argument by name`, named.value.location);
  const boundCall = bindSignature(
    scalar,
    name,
    call.arguments.map(({ value }) => {
      const operand = bind(value);
      // A pattern is matched against the characters of a JSON string, as by LIKE.
      if (scalar.group === 'patterns') return jsonText(operand);
      return wide && operand.type === 'boolean' && outputNames.has(name)
        ? bindSignature(shortBoolean, name, [operand], value.location)
        : operand;
    }),
    location,
  );
  return catalogue && name === 'MAKE_TIMESTAMP' ? { ...boundCall, wire: 'timestamp' } : boundCall;
}

/** Binds each argument once: if overloads bound theirs anew at each of n levels, the innermost would be bound 2^n times. */
function once(bind: Bind): Bind {
  const boundArguments = new Map<Expression, Bound>();
  return (argument) => {
    let bound = boundArguments.get(argument);
    if (bound === undefined) boundArguments.set(argument, (bound = bind(argument)));
    return bound;
  };
}

function refuse(error: ServiceError): never {
  throw error;
}

/** Functions to which PostgreSQL gives values as it shows them. */
const outputNames: ReadonlySet<string> = new Set(['CONCAT', 'CONCAT_WS', 'FORMAT']);

/** Operators that mean something else where no array is. */
const arrayOperators: ReadonlySet<string> = new Set(['||', 'ARRAY', 'FORMAT']);

/** Functions that are others where an interval is, or an instant without a zone. */
const timeFunctions: ReadonlySet<string> = new Set('DATE_PART DATE_TRUNC TO_CHAR MAKE_INTERVAL AGE'.split(' '));

const intervalParts = 'YEARS MONTHS WEEKS DAYS HOURS MINS SECS'.split(' ');

function timeCall(call: Call, bind: Bind, catalogue: CatalogueFunctions): Bound | null {
  const { name, arguments: given, location } = call;
  if (name === 'MAKE_INTERVAL') {
    const parts = intervalParts.map((part, i): Expression => {
      const argument = given.find((each, at) => (each.name === null ? at === i : each.name === part));
      return argument?.value ?? { kind: 'constant', cell: 0n, location };
    });
    const strange = given.find((each) => each.name !== null && !intervalParts.includes(each.name));
    if (strange || given.length > parts.length)
      throw errorAt('REL_INVALID', `MAKE_INTERVAL takes ${intervalParts.join(', ').toLowerCase()}`, location, 'no-such-function');
    return catalogueCall({ ...call, arguments: parts.map((value) => ({ name: null, value })) }, bind, catalogue);
  }
  if (name === 'AGE' && given.length === 1) {
    const today: Expression = {
      kind: 'call',
      name: 'DATE',
      arguments: [{ name: null, value: { kind: 'now', location } }],
      location,
    };
    return catalogueCall({ ...call, arguments: [{ name: null, value: today }, ...given] }, bind, catalogue);
  }
  const wires = given.map(({ value }) => wireTypeOf(bind(value)));
  const isOther =
    wires.some((wire) => wire === 'interval' || wire === 'timestamp') || (name === 'DATE_TRUNC' && wires.length === 3);
  return isOther ? catalogueCall(call, bind, catalogue) : null;
}

/** Null where no argument is an array, names a thing of the catalogue, or is json that is put before or behind another. */
function arrayCall(call: Call, bind: Bind, catalogue: CatalogueFunctions): Bound | null {
  const types = call.arguments.map(({ value }) => wireTypeOf(bind(value)));
  return call.name === 'ARRAY' ||
    types.some((type) => catalogue.elementOf(type) !== null || catalogue.isReference(type)) ||
    (call.name === '||' && types.includes('json'))
    ? catalogueCall(call, bind, catalogue)
    : null;
}

function catalogueCall(
  { name, arguments: given, location }: Call,
  bind: Bind,
  catalogue: CatalogueFunctions | undefined,
): Bound | null {
  if (catalogue === undefined || given.some((each) => each.name !== null)) return null;
  const operands = given.map(({ value }) => bind(value));
  const catalogueCall = catalogue.call(name.toLowerCase(), operands.map(wireTypeOf));
  return catalogueCall && ofCatalogue(name, catalogueCall, operands, location);
}

export function ofCatalogue(
  name: string,
  { signature, type, wire }: CatalogueCall,
  given: readonly Bound[],
  location: Location,
): Bound {
  const operands = given.map((each, i) => (signature.takes[i] === 'timestamp' ? asInstantLiteral(each, 'text') : each));
  const refused = operands.find((each) => each.type === 'interval' || each.type === 'vector');
  if (refused) throw mismatch(`${name} can't take ${refused.type}`, location);
  return { kind: 'call', name, function: signature, operands, type, wire };
}

/** Binds a call to the signature that fits; refuses arguments that no signature takes. */
function bindSignature(
  of: ScalarFunction,
  name: string,
  arguments_: readonly Bound[],
  location: Location,
  reason: ErrorReason = 'no-such-function',
): CalledBound {
  const literal = arguments_.map((each) => each.kind === 'literal' && each.as === 'value');
  const types = arguments_.map(({ type }) => type);
  const resolved = resolveSignature(of, types, literal);
  if (!resolved) {
    const given = types.length === 0 ? 'nothing' : types.join(', ');
    throw errorAt(
      'REL_TYPE_MISMATCH',
      `${name} can't take ${given}${of.usage === '' ? '' : `: it is written ${of.usage}`}`,
      location,
      reason,
    );
  }
  const { signature, same, type } = resolved;
  const operands = arguments_.map((operand, i): Bound => {
    const wanted = signature.takes[Math.min(i, signature.takes.length - 1)]!;
    if (wanted === 'any') return asText(operand, location);
    const instant = wanted === 'timestamp' || (isSame(signature.takes, i) && same === 'timestamp');
    return instant ? asInstantLiteral(operand) : operand;
  });
  return { kind: 'call', name: of.name, function: signature, operands, type };
}

function asText(operand: Bound, location: Location): Bound {
  return operand.type === 'string' || operand.type === 'null'
    ? operand
    : bindSignature(casts.get('string')!, 'CAST', [operand], location);
}

function bindCast(call: Call, bind: Bind, wide: boolean, catalogue: CatalogueFunctions | undefined): Bound {
  const [of, type, ...sizes] = call.arguments;
  if (!of || type?.value.kind !== 'column' || type.name !== 'TYPE') throw errorAt('REL_PARSE', 'CAST(x AS type)', call.location);
  const { name: castType } = type.value;
  const wireType = catalogue?.typeNamed(castType) ?? null;
  const named = typeNames.get(castType);
  if (catalogue && wireType !== null) {
    const operand = bind(of.value);
    const from = wireTypeOf(operand);
    if (named === undefined || !catalogue.isPlain(wireType) || !catalogue.isPlain(from)) {
      const cast = catalogue.cast(from, wireType);
      if (cast === null)
        throw errorAt('REL_TYPE_MISMATCH', `${from} can't be cast to ${wireType}`, call.location, 'can-not-cast');
      return ofCatalogue(`CAST AS ${castType}`, cast, [operand], call.location);
    }
  }
  // The integer type of this store has 64 bits; what clients of Postgres mean by its name has 32.
  const target = wide && named === 'integer' && /^INT(EGER)?$/.test(castType) ? 'int4' : named;
  if (!target)
    throw errorAt(
      'REL_INVALID',
      `there is no type ${type.value.name}${didYouMean(type.value.name, [...typeNames.keys()])}`,
      type.value.location,
      'no-such-type',
    );
  const operand = bind(of.value);
  const from = wireTypeOf(operand);
  if (target === 'vector')
    return asVector(
      operand,
      sizes.map(({ value }) => bind(value)),
      call.location,
    );
  const shown = catalogue && wireType !== null && ownNames.has(wireType) ? { wire: wireType } : {};
  if (operand.type === 'null') return { ...nullOf(target, operand), ...shown };
  const cast =
    wide && target === 'string' && isDate(operand)
      ? dayText
      : target === 'string' && from === 'timestamp'
        ? localText
        : (wide ? wideCasts : casts).get(target)!;
  return { ...bindSignature(cast, `CAST AS ${type.value.name}`, [operand], call.location, 'can-not-cast'), ...shown };
}

/** A row of values as one, which is the text that PostgreSQL shows of a record. */
export function recordOf(row: Extract<Expression, { kind: 'row' }>, bind: Bind, catalogue: CatalogueFunctions): Bound {
  const fields = row.items.map((item): Bound => {
    const { location } = item;
    const bound = bind(item);
    if (bound.type === 'string') return bound;
    if (bound.type === 'boolean') return bindSignature(shortBoolean, 'ROW', [bound], location);
    const type: Expression = { kind: 'column', table: null, name: 'TEXT', location };
    const given = [
      { name: null, value: item },
      { name: 'TYPE', value: type },
    ];
    return bindCast({ kind: 'call', name: 'CAST', arguments: given, location }, () => bound, true, catalogue);
  });
  const catalogueCall = catalogue.call(
    '#row',
    fields.map(() => 'text'),
  )!;
  return ofCatalogue('ROW', catalogueCall, fields, row.location);
}

/** Catalogue types whose values are plain cells, and whose names clients see. */
const ownNames: ReadonlySet<string> = new Set(['name', 'oid', 'timestamp']);

/** A vector as the text that expressions hold. */
export const vectorAsText = (vector: Bound, location: Location): Bound =>
  bindSignature(vectorCast, vectorCast.name, [vector], location);

/** A column of vectors is one already. */
function asVector(operand: Bound, sizes: readonly Bound[], location: Location): Bound {
  return operand.type === 'vector' || operand.type === 'null'
    ? operand
    : bindSignature(vectorCast, vectorCast.name, [operand, ...sizes], location);
}

/** NULL of a type, as a column that is NULL throughout would be. */
function nullOf(target: CastTarget, operand: Bound): CalledBound {
  const cast = casts.get(target) ?? casts.get('string')!;
  const type = target === 'date' ? 'timestamp' : isSized(target) ? sizedTypes[target] : target;
  return { kind: 'call', name: cast.name, function: cast.signatures[0]!, operands: [operand], type };
}

/** A text literal as a day. */
export function asDateLiteral(bound: Bound): Bound {
  const instant = asInstantLiteral(bound, 'text');
  return instant.kind === 'literal' && instant.as === 'instant'
    ? bindSignature(casts.get('date')!, 'DATE', [instant], instant.location)
    : bound;
}

/** A parameter of which the type is stated, as a value of that type wherever it stands. */
export function bindStated(literal: Literal, { type, isNull }: Exclude<StatedType, 'unknown'>): Bound {
  if (isNull) return nullOf(type, { ...literal, type: 'null' });
  switch (type) {
    case 'timestamp':
      return { ...literal, as: 'instant', type };
    case 'date':
      return bindSignature(casts.get('date')!, 'DATE', [{ ...literal, as: 'instant', type: 'timestamp' }], literal.location);
    case 'json':
      return bindSignature(casts.get(type)!, type, [literal], literal.location);
    case 'vector':
      return asVector(literal, [], literal.location);
    default:
      return { ...literal, type };
  }
}

/** `local`: an instant without a zone is of a type of its own. */
function bindLiteralInstant(call: Call, bind: Bind, wide: boolean, local: boolean): Bound {
  const [of, ...others] = call.arguments;
  if (!of || others.length > 0) throw errorAt('REL_INVALID', `${call.name} takes one text`, call.location);
  const operand = bind(of.value);
  if (operand.kind === 'literal' && operand.type === 'string') {
    const instant = asInstantLiteral(operand);
    if (call.name === 'DATE') return bindSignature(casts.get('date')!, 'DATE', [instant], call.location);
    if (!local) return instant;
    return { ...bindSignature(wideCasts.get('timestamp')!, call.name, [instant], call.location), wire: 'timestamp' };
  }
  const boundCall = bindSignature(
    (wide ? wideCasts : casts).get(call.name === 'DATE' ? 'date' : 'timestamp')!,
    call.name,
    [operand],
    call.location,
  );
  return local && call.name === 'TIMESTAMP' ? { ...boundCall, wire: 'timestamp' } : boundCall;
}

function bindCoalesce({ arguments: given, location }: Call, bind: Bind, catalogue: CatalogueFunctions | undefined): Bound {
  const operands = asIntervals(
    given.map(({ value }) => bind(value)),
    catalogue,
  );
  if (operands.length === 0) throw errorAt('REL_INVALID', 'COALESCE takes at least one value', location, 'syntax');
  const { type, fit } = commonResult('a COALESCE', operands, location);
  return withCommonWire({ kind: 'coalesce', operands: operands.map(fit), type }, operands, catalogue);
}

/** Texts beside an interval as intervals. */
export function asIntervals(results: readonly Bound[], catalogue: CatalogueFunctions | undefined): readonly Bound[] {
  const wires = results.map(wireTypeOf);
  const cast = wires.includes('interval') ? catalogue?.cast('unknown', 'interval') : null;
  if (!cast) return results;
  return results.map((each, i) =>
    each.kind === 'literal' && wires[i] === 'unknown' ? ofCatalogue('CAST AS INTERVAL', cast, [each], each.location) : each,
  );
}

/** The one type of several results, and each as a value of it. */
export function commonResult(
  signatureName: string,
  results: readonly Bound[],
  location: Location,
): { readonly type: ValueType; readonly fit: (result: Bound) => Bound } {
  const fixed = results.filter((each) => !isUntypedText(each));
  const types = new Set((fixed.length > 0 ? fixed : results).map((each) => each.type));
  types.delete('null');
  if (types.size === 0) results.forEach((each) => each.type === 'null' || types.add(each.type));
  if (types.has('timestamp') && types.size > 1) types.delete('string');
  if (types.has('number')) types.delete('integer');
  const [type = 'null', ...others] = types;
  if (others.length > 0)
    throw mismatch(`the results of ${signatureName} have one type, not ${[...types].join(' and ')}`, location);
  if (type === 'interval' || type === 'vector') throw mismatch(`${signatureName} can't yield ${type}`, location);
  const fit = (result: Bound): Bound => {
    const fitted = type === 'timestamp' ? asInstantLiteral(result) : asBeside(result, type);
    if (type === 'timestamp' && fitted.type === 'string') {
      throw mismatch(`the results of ${signatureName} have one type, not timestamp and string`, location);
    }
    return fitted;
  };
  return { type, fit };
}

/** A text literal as an instant; an integer literal too, unless only texts are to be taken. */
export function asInstantLiteral(bound: Bound, of: 'text' | 'any' = 'any'): Bound {
  const isTyped = bound.type === 'string' || (bound.type === 'integer' && of === 'any');
  const instant = bound.kind === 'literal' && bound.as === 'value' && isTyped;
  return instant ? { ...bound, as: 'instant', type: 'timestamp' } : bound;
}

/** A text without a type, as Postgres has it: in the wide dialect it is a value of the type that it stands beside. */
export function asBeside(bound: Bound, other: ValueType): Bound {
  if (!isUntypedText(bound)) return bound;
  if (other !== 'integer' && other !== 'number' && other !== 'boolean') return bound;
  return bindSignature(casts.get(other)!, `CAST AS ${other}`, [bound], bound.location);
}

function isUntypedText(bound: Bound): bound is Literal {
  return bound.kind === 'literal' && bound.type === 'string' && bound.as === 'value' && bound.zoned === true;
}

/** A column of vectors, or a text that was cast to one. */
export function isVector(bound: Bound): boolean {
  return bound.type === 'vector' || (bound.kind === 'call' && bound.name === vectorCast.name && bound.type === 'string');
}

/** `=` of two vectors, or of a vector and a text; null where neither is a vector. */
export function vectorsEqual(left: Bound, right: Bound, location: Location): Bound | null {
  if (!isVector(left) && !isVector(right)) return null;
  return bindSignature(sameVector, sameVector.name, [left, right], location);
}

/** Json that a graph pattern reads has no fixed type: beside a cell it takes the type of that cell. */
export function besideJson(left: Bound, right: Bound): [Bound, Bound] {
  return [ofAnyType(left, right.type), ofAnyType(right, left.type)];
}

export function ofAnyType(bound: Bound, type: ValueType): Bound {
  if (bound.kind !== 'call' || !anyTyped.has(bound.function)) return bound;
  if (type === 'string') return jsonText(bound);
  if (type !== 'integer' && type !== 'number' && type !== 'boolean' && type !== 'timestamp') return bound;
  return { kind: 'call', name: '#AS', function: fitted[type], operands: [bound], type };
}

/** A value among those of a list or a map. */
export function asJson(bound: Bound, location: Location): Bound {
  if (bound.type === 'json' || bound.type === 'null') return bound;
  return calledByName(
    bound.type === 'vector' ? '#PROPERTY' : '#JSON',
    [bound.type === 'vector' ? vectorAsText(bound, location) : bound],
    location,
  );
}

export function calledByName(name: string, operands: readonly Bound[], location: Location): Bound {
  return bindSignature(scalarFunction(name)!, name, operands, location);
}

/** json as the text that it is compared by; anything else as it is. */
export function jsonText(bound: Bound): Bound {
  if (bound.type !== 'json') return bound;
  return { kind: 'call', name: 'TEXT', function: jsonAsText, operands: [bound], type: 'string' };
}

export function isText(type: ValueType): boolean {
  return type === 'string' || type === 'json';
}

export function isNumeric(type: ValueType): type is Extract<ColumnType, 'integer' | 'number'> {
  return type === 'integer' || type === 'number';
}

function unknown(
  { name, location, arguments: given }: Call,
  bind: Bind,
  catalogue: CatalogueFunctions | undefined,
): ServiceError {
  if (isOperator.test(name)) {
    const detail =
      catalogue === undefined
        ? `the operator ${name} is of the wide dialect, which the relational and the columnar doors take: it is not implemented here`
        : `there is no operator ${name} for ${given.map(({ value }) => wireTypeOf(bind(value))).join(' and ')}`;
    return errorAt('REL_NOT_IMPLEMENTED', detail, location, 'no-such-function');
  }
  const guess = didYouMean(
    name,
    scalarFunctions.map((each) => each.name),
  );
  return errorAt('REL_NOT_IMPLEMENTED', `${name}() is not implemented${guess}`, location, 'no-such-function');
}

const isOperator = /^[^\w]+$/;

function mismatch(detail: string, location: Location): ServiceError {
  return errorAt('REL_TYPE_MISMATCH', detail, location, 'types-differ');
}

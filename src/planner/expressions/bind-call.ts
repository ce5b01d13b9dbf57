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
type CallExpression = Extract<Expression, { kind: 'call' }>;
type CalledBound = Extract<Bound, { kind: 'call' }>;
type BindArgument = (argument: Expression) => Bound;

export function bindCall(
  call: CallExpression,
  bindOperand: BindArgument,
  isWideDialect = false,
  catalogue?: CatalogueFunctions,
): Bound {
  const bindOnce = once(bindOperand);
  const { name: callName, location } = call;
  switch (callName) {
    case 'CAST':
      return bindCast(call, bindOnce, isWideDialect, catalogue);
    case 'DATE':
    case 'TIMESTAMP':
      // The word before a text, or a call: both are the text as an instant.
      return bindLiteralInstant(call, bindOnce, isWideDialect, catalogue !== undefined);
    case 'EXTRACT': {
      const [field, instantArgument] = call.arguments;
      if (field?.value.kind !== 'column' || field.name !== 'FIELD' || !instantArgument)
        throw errorAt('REL_PARSE', 'EXTRACT(field FROM x)', location);
      const operand = bindOnce(instantArgument.value);
      const fieldConstant: Bound = { kind: 'constant', cell: field.value.name, type: 'string' };
      const intervalExtraction = wireTypeOf(operand) === 'interval' ? catalogue?.call('date_part', ['text', 'interval']) : null;
      if (intervalExtraction) return ofCatalogue('EXTRACT', intervalExtraction, [fieldConstant, operand], location);
      const extraction = extractions.get(unitNamed(field.value.name));
      if (!extraction) {
        throw errorAt('REL_INVALID', `EXTRACT takes ${extractFields.join(', ')}`, field.value.location);
      }
      return bindSignature(extraction, 'EXTRACT', [asInstantLiteral(operand)], location);
    }
    case 'COALESCE':
      return bindCoalesce(call, bindOnce, catalogue);
  }
  const scalar = scalarFunction(callName);
  const arrayBound = catalogue && arrayOperators.has(callName) ? arrayCall(call, bindOnce, catalogue) : null;
  if (arrayBound) return arrayBound;
  const timeBound = catalogue && timeFunctions.has(callName) ? timeCall(call, bindOnce, catalogue) : null;
  if (timeBound) return timeBound;
  if (!scalar) return catalogueCall(call, bindOnce, catalogue) ?? refuse(unknown(call, bindOnce, catalogue));
  const namedArgument = call.arguments.find((callArgument) => callArgument.name !== null);
  if (namedArgument) throw errorAt('REL_INVALID', `${callName} takes no argument by name`, namedArgument.value.location);
  const boundCall = bindSignature(
    scalar,
    callName,
    call.arguments.map(({ value }) => {
      const operand = bindOnce(value);
      // A pattern is matched against the characters of a JSON string, as by LIKE.
      if (scalar.group === 'patterns') return jsonText(operand);
      return isWideDialect && operand.type === 'boolean' && textOutputCalls.has(callName)
        ? bindSignature(shortBoolean, callName, [operand], value.location)
        : operand;
    }),
    location,
  );
  return catalogue && callName === 'MAKE_TIMESTAMP' ? { ...boundCall, wire: 'timestamp' } : boundCall;
}

/** Binds each argument once: if overloads bound theirs anew at each of n levels, the innermost would be bound 2^n times. */
function once(bind: BindArgument): BindArgument {
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
const textOutputCalls: ReadonlySet<string> = new Set(['CONCAT', 'CONCAT_WS', 'FORMAT']);

/** Operators that mean something else where no array is. */
const arrayOperators: ReadonlySet<string> = new Set(['||', 'ARRAY', 'FORMAT']);

/** Functions that are others where an interval is, or an instant without a zone. */
const timeFunctions: ReadonlySet<string> = new Set('DATE_PART DATE_TRUNC TO_CHAR MAKE_INTERVAL AGE'.split(' '));

const intervalUnits = 'YEARS MONTHS WEEKS DAYS HOURS MINS SECS'.split(' ');

function timeCall(call: CallExpression, bind: BindArgument, catalogue: CatalogueFunctions): Bound | null {
  const { name, arguments: callArguments, location } = call;
  if (name === 'MAKE_INTERVAL') {
    const unitArguments = intervalUnits.map((intervalUnit, i): Expression => {
      const argument = callArguments.find((callArgument, argumentIndex) =>
        callArgument.name === null ? argumentIndex === i : callArgument.name === intervalUnit,
      );
      return argument?.value ?? { kind: 'constant', cell: 0n, location };
    });
    const unknownUnit = callArguments.find(
      (callArgument) => callArgument.name !== null && !intervalUnits.includes(callArgument.name),
    );
    if (unknownUnit || callArguments.length > unitArguments.length)
      throw errorAt('REL_INVALID', `MAKE_INTERVAL takes ${intervalUnits.join(', ').toLowerCase()}`, location, 'no-such-function');
    return catalogueCall({ ...call, arguments: unitArguments.map((value) => ({ name: null, value })) }, bind, catalogue);
  }
  if (name === 'AGE' && callArguments.length === 1) {
    const todayCall: Expression = {
      kind: 'call',
      name: 'DATE',
      arguments: [{ name: null, value: { kind: 'now', location } }],
      location,
    };
    return catalogueCall({ ...call, arguments: [{ name: null, value: todayCall }, ...callArguments] }, bind, catalogue);
  }
  const argumentWires = callArguments.map(({ value }) => wireTypeOf(bind(value)));
  const needsCatalogue =
    argumentWires.some((wire) => wire === 'interval' || wire === 'timestamp') ||
    (name === 'DATE_TRUNC' && argumentWires.length === 3);
  return needsCatalogue ? catalogueCall(call, bind, catalogue) : null;
}

/** Null where no argument is an array, names a thing of the catalogue, or is json that is put before or behind another. */
function arrayCall(call: CallExpression, bind: BindArgument, catalogue: CatalogueFunctions): Bound | null {
  const operandWires = call.arguments.map(({ value }) => wireTypeOf(bind(value)));
  return call.name === 'ARRAY' ||
    operandWires.some((operandWire) => catalogue.elementOf(operandWire) !== null || catalogue.isReference(operandWire)) ||
    (call.name === '||' && operandWires.includes('json'))
    ? catalogueCall(call, bind, catalogue)
    : null;
}

function catalogueCall(
  { name, arguments: callArguments, location }: CallExpression,
  bind: BindArgument,
  catalogue: CatalogueFunctions | undefined,
): Bound | null {
  if (catalogue === undefined || callArguments.some((callArgument) => callArgument.name !== null)) return null;
  const operands = callArguments.map(({ value }) => bind(value));
  const catalogueCall = catalogue.call(name.toLowerCase(), operands.map(wireTypeOf));
  return catalogueCall && ofCatalogue(name, catalogueCall, operands, location);
}

export function ofCatalogue(
  name: string,
  { signature, type, wire }: CatalogueCall,
  boundArguments: readonly Bound[],
  location: Location,
): Bound {
  const operands = boundArguments.map((boundArgument, i) =>
    signature.takes[i] === 'timestamp' ? asInstantLiteral(boundArgument, 'text') : boundArgument,
  );
  const refusedOperand = operands.find((boundArgument) => boundArgument.type === 'interval' || boundArgument.type === 'vector');
  if (refusedOperand) throw mismatch(`${name} can't take ${refusedOperand.type}`, location);
  return { kind: 'call', name, function: signature, operands, type, wire };
}

/** Binds a call to the signature that fits; refuses arguments that no signature takes. */
function bindSignature(
  calledFunction: ScalarFunction,
  name: string,
  boundArguments: readonly Bound[],
  location: Location,
  reason: ErrorReason = 'no-such-function',
): CalledBound {
  const isLiteralArgument = boundArguments.map(
    (boundArgument) => boundArgument.kind === 'literal' && boundArgument.as === 'value',
  );
  const argumentTypes = boundArguments.map(({ type }) => type);
  const resolved = resolveSignature(calledFunction, argumentTypes, isLiteralArgument);
  if (!resolved) {
    const givenTypes = argumentTypes.length === 0 ? 'nothing' : argumentTypes.join(', ');
    throw errorAt(
      'REL_TYPE_MISMATCH',
      `${name} can't take ${givenTypes}${calledFunction.usage === '' ? '' : `: it is written ${calledFunction.usage}`}`,
      location,
      reason,
    );
  }
  const { signature, same: sharedType, type } = resolved;
  const operands = boundArguments.map((operand, i): Bound => {
    const parameterType = signature.takes[Math.min(i, signature.takes.length - 1)]!;
    if (parameterType === 'any') return asText(operand, location);
    const takesInstant = parameterType === 'timestamp' || (isSame(signature.takes, i) && sharedType === 'timestamp');
    return takesInstant ? asInstantLiteral(operand) : operand;
  });
  return { kind: 'call', name: calledFunction.name, function: signature, operands, type };
}

function asText(operand: Bound, location: Location): Bound {
  return operand.type === 'string' || operand.type === 'null'
    ? operand
    : bindSignature(casts.get('string')!, 'CAST', [operand], location);
}

function bindCast(
  call: CallExpression,
  bind: BindArgument,
  isWideDialect: boolean,
  catalogue: CatalogueFunctions | undefined,
): Bound {
  const [castOperand, type, ...vectorSizes] = call.arguments;
  if (!castOperand || type?.value.kind !== 'column' || type.name !== 'TYPE')
    throw errorAt('REL_PARSE', 'CAST(x AS type)', call.location);
  const { name: castType } = type.value;
  const wireType = catalogue?.typeNamed(castType) ?? null;
  const plainCastTarget = typeNames.get(castType);
  if (catalogue && wireType !== null) {
    const operand = bind(castOperand.value);
    const operandWire = wireTypeOf(operand);
    if (plainCastTarget === undefined || !catalogue.isPlain(wireType) || !catalogue.isPlain(operandWire)) {
      const castSignature = catalogue.cast(operandWire, wireType);
      if (castSignature === null)
        throw errorAt('REL_TYPE_MISMATCH', `${operandWire} can't be cast to ${wireType}`, call.location, 'can-not-cast');
      return ofCatalogue(`CAST AS ${castType}`, castSignature, [operand], call.location);
    }
  }
  // The integer type of this store has 64 bits; what clients of Postgres mean by its name has 32.
  const castTarget = isWideDialect && plainCastTarget === 'integer' && /^INT(EGER)?$/.test(castType) ? 'int4' : plainCastTarget;
  if (!castTarget)
    throw errorAt(
      'REL_INVALID',
      `there is no type ${type.value.name}${didYouMean(type.value.name, [...typeNames.keys()])}`,
      type.value.location,
      'no-such-type',
    );
  const operand = bind(castOperand.value);
  const from = wireTypeOf(operand);
  if (castTarget === 'vector')
    return asVector(
      operand,
      vectorSizes.map(({ value }) => bind(value)),
      call.location,
    );
  const shownWire = catalogue && wireType !== null && wiredTypes.has(wireType) ? { wire: wireType } : {};
  if (operand.type === 'null') return { ...nullOf(castTarget, operand), ...shownWire };
  const cast =
    isWideDialect && castTarget === 'string' && isDate(operand)
      ? dayText
      : castTarget === 'string' && from === 'timestamp'
        ? localText
        : (isWideDialect ? wideCasts : casts).get(castTarget)!;
  return { ...bindSignature(cast, `CAST AS ${type.value.name}`, [operand], call.location, 'can-not-cast'), ...shownWire };
}

/** A row of values as one, which is the text that PostgreSQL shows of a record. */
export function recordOf(row: Extract<Expression, { kind: 'row' }>, bind: BindArgument, catalogue: CatalogueFunctions): Bound {
  const rowFields = row.items.map((rowItem): Bound => {
    const { location } = rowItem;
    const boundField = bind(rowItem);
    if (boundField.type === 'string') return boundField;
    if (boundField.type === 'boolean') return bindSignature(shortBoolean, 'ROW', [boundField], location);
    const textTypeName: Expression = { kind: 'column', table: null, name: 'TEXT', location };
    const castArguments = [
      { name: null, value: rowItem },
      { name: 'TYPE', value: textTypeName },
    ];
    return bindCast({ kind: 'call', name: 'CAST', arguments: castArguments, location }, () => boundField, true, catalogue);
  });
  const catalogueCall = catalogue.call(
    '#row',
    rowFields.map(() => 'text'),
  )!;
  return ofCatalogue('ROW', catalogueCall, rowFields, row.location);
}

/** Catalogue types whose values are plain cells, and whose names clients see. */
const wiredTypes: ReadonlySet<string> = new Set(['name', 'oid', 'timestamp']);

/** A vector as the text that expressions hold. */
export const vectorAsText = (vector: Bound, location: Location): Bound =>
  bindSignature(vectorCast, vectorCast.name, [vector], location);

/** A column of vectors is one already. */
function asVector(operand: Bound, vectorSizes: readonly Bound[], location: Location): Bound {
  return operand.type === 'vector' || operand.type === 'null'
    ? operand
    : bindSignature(vectorCast, vectorCast.name, [operand, ...vectorSizes], location);
}

/** NULL of a type, as a column that is NULL throughout would be. */
function nullOf(castTarget: CastTarget, operand: Bound): CalledBound {
  const nullCast = casts.get(castTarget) ?? casts.get('string')!;
  const nullType = castTarget === 'date' ? 'timestamp' : isSized(castTarget) ? sizedTypes[castTarget] : castTarget;
  return { kind: 'call', name: nullCast.name, function: nullCast.signatures[0]!, operands: [operand], type: nullType };
}

/** A text literal as a day. */
export function asDateLiteral(bound: Bound): Bound {
  const instantLiteral = asInstantLiteral(bound, 'text');
  return instantLiteral.kind === 'literal' && instantLiteral.as === 'instant'
    ? bindSignature(casts.get('date')!, 'DATE', [instantLiteral], instantLiteral.location)
    : bound;
}

/** A parameter of which the type is stated, as a value of that type wherever it stands. */
export function bindStated(literal: Literal, { type: statedType, isNull }: Exclude<StatedType, 'unknown'>): Bound {
  if (isNull) return nullOf(statedType, { ...literal, type: 'null' });
  switch (statedType) {
    case 'timestamp':
      return { ...literal, as: 'instant', type: statedType };
    case 'date':
      return bindSignature(casts.get('date')!, 'DATE', [{ ...literal, as: 'instant', type: 'timestamp' }], literal.location);
    case 'json':
      return bindSignature(casts.get(statedType)!, statedType, [literal], literal.location);
    case 'vector':
      return asVector(literal, [], literal.location);
    default:
      return { ...literal, type: statedType };
  }
}

/** `isLocalTimestamp`: an instant without a zone is of a type of its own. */
function bindLiteralInstant(call: CallExpression, bind: BindArgument, isWideDialect: boolean, isLocalTimestamp: boolean): Bound {
  const [instantText, ...extraArguments] = call.arguments;
  if (!instantText || extraArguments.length > 0) throw errorAt('REL_INVALID', `${call.name} takes one text`, call.location);
  const operand = bind(instantText.value);
  if (operand.kind === 'literal' && operand.type === 'string') {
    const instantLiteral = asInstantLiteral(operand);
    if (call.name === 'DATE') return bindSignature(casts.get('date')!, 'DATE', [instantLiteral], call.location);
    if (!isLocalTimestamp) return instantLiteral;
    return { ...bindSignature(wideCasts.get('timestamp')!, call.name, [instantLiteral], call.location), wire: 'timestamp' };
  }
  const boundCall = bindSignature(
    (isWideDialect ? wideCasts : casts).get(call.name === 'DATE' ? 'date' : 'timestamp')!,
    call.name,
    [operand],
    call.location,
  );
  return isLocalTimestamp && call.name === 'TIMESTAMP' ? { ...boundCall, wire: 'timestamp' } : boundCall;
}

function bindCoalesce(
  { arguments: coalesceArguments, location }: CallExpression,
  bind: BindArgument,
  catalogue: CatalogueFunctions | undefined,
): Bound {
  const operands = asIntervals(
    coalesceArguments.map(({ value }) => bind(value)),
    catalogue,
  );
  if (operands.length === 0) throw errorAt('REL_INVALID', 'COALESCE takes at least one value', location, 'syntax');
  const { type: coalesceType, fit: fitResult } = commonResult('a COALESCE', operands, location);
  return withCommonWire({ kind: 'coalesce', operands: operands.map(fitResult), type: coalesceType }, operands, catalogue);
}

/** Texts beside an interval as intervals. */
export function asIntervals(branchResults: readonly Bound[], catalogue: CatalogueFunctions | undefined): readonly Bound[] {
  const resultWires = branchResults.map(wireTypeOf);
  const intervalCast = resultWires.includes('interval') ? catalogue?.cast('unknown', 'interval') : null;
  if (!intervalCast) return branchResults;
  return branchResults.map((branchResult, i) =>
    branchResult.kind === 'literal' && resultWires[i] === 'unknown'
      ? ofCatalogue('CAST AS INTERVAL', intervalCast, [branchResult], branchResult.location)
      : branchResult,
  );
}

/** The one type of several results, and each as a value of it. */
export function commonResult(
  signatureName: string,
  branchResults: readonly Bound[],
  location: Location,
): { readonly type: ValueType; readonly fit: (result: Bound) => Bound } {
  const typedResults = branchResults.filter((typedResult) => !isUntypedText(typedResult));
  const resultTypes = new Set((typedResults.length > 0 ? typedResults : branchResults).map((typedResult) => typedResult.type));
  resultTypes.delete('null');
  if (resultTypes.size === 0)
    branchResults.forEach((typedResult) => typedResult.type === 'null' || resultTypes.add(typedResult.type));
  if (resultTypes.has('timestamp') && resultTypes.size > 1) resultTypes.delete('string');
  if (resultTypes.has('number')) resultTypes.delete('integer');
  const [commonType = 'null', ...otherResultTypes] = resultTypes;
  if (otherResultTypes.length > 0)
    throw mismatch(`the results of ${signatureName} have one type, not ${[...resultTypes].join(' and ')}`, location);
  if (commonType === 'interval' || commonType === 'vector')
    throw mismatch(`${signatureName} can't yield ${commonType}`, location);
  const fitResult = (branchResult: Bound): Bound => {
    const fittedResult = commonType === 'timestamp' ? asInstantLiteral(branchResult) : asBeside(branchResult, commonType);
    if (commonType === 'timestamp' && fittedResult.type === 'string') {
      throw mismatch(`the results of ${signatureName} have one type, not timestamp and string`, location);
    }
    return fittedResult;
  };
  return { type: commonType, fit: fitResult };
}

/** A text literal as an instant; an integer literal too, unless only texts are to be taken. */
export function asInstantLiteral(bound: Bound, acceptedLiterals: 'text' | 'any' = 'any'): Bound {
  const isTyped = bound.type === 'string' || (bound.type === 'integer' && acceptedLiterals === 'any');
  const isInstantLiteral = bound.kind === 'literal' && bound.as === 'value' && isTyped;
  return isInstantLiteral ? { ...bound, as: 'instant', type: 'timestamp' } : bound;
}

/** A text without a type, as Postgres has it: in the wide dialect it is a value of the type that it stands beside. */
export function asBeside(bound: Bound, besideType: ValueType): Bound {
  if (!isUntypedText(bound)) return bound;
  if (besideType !== 'integer' && besideType !== 'number' && besideType !== 'boolean') return bound;
  return bindSignature(casts.get(besideType)!, `CAST AS ${besideType}`, [bound], bound.location);
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
  { name, location, arguments: callArguments }: CallExpression,
  bind: BindArgument,
  catalogue: CatalogueFunctions | undefined,
): ServiceError {
  if (isOperator.test(name)) {
    const operatorProblem =
      catalogue === undefined
        ? `the operator ${name} is of the wide dialect, which the relational and the columnar doors take: it is not implemented here`
        : `there is no operator ${name} for ${callArguments.map(({ value }) => wireTypeOf(bind(value))).join(' and ')}`;
    return errorAt('REL_NOT_IMPLEMENTED', operatorProblem, location, 'no-such-function');
  }
  const functionGuess = didYouMean(
    name,
    scalarFunctions.map((each) => each.name),
  );
  return errorAt('REL_NOT_IMPLEMENTED', `${name}() is not implemented${functionGuess}`, location, 'no-such-function');
}

const isOperator = /^[^\w]+$/;

function mismatch(detail: string, location: Location): ServiceError {
  return errorAt('REL_TYPE_MISMATCH', detail, location, 'types-differ');
}

/**
 * A graph pattern as the query that it stands for. A node with a label is a table, one without the rows of every type that is no
 * edge, an edge a walk from the rows before it, OPTIONAL MATCH a left join, WITH a subquery. Within one MATCH no edge is gone along
 * twice. Pure.
 *
 * A node without a label that an edge leads to is its name alone, and joined to no row, as long as nothing is asked of its row.
 */
import { rowColumns, unwoundColumn } from '../graph/pattern-columns.ts';
import { type ColumnType, compareText } from '../../log/values/value.ts';
import { errorAt } from '../syntax/error-location.ts';
import type {
  ColumnRef,
  EntityShape,
  Expression,
  OrderItem,
  Location,
  ProjectionItem,
  Query,
  Select,
  Source,
  WantedEntity,
} from '../syntax/statement.ts';
import type { Clause, Item, PatternEdge, PatternNode, Projection, Term } from '../syntax/pattern-tree.ts';
import { type Fact, PatternChains, type Rows, tableNode } from './pattern-chains.ts';
import { isAggregate, itemNamed, namesIn } from './pattern-terms.ts';
import { PatternUses } from './pattern-uses.ts';
import {
  both,
  call,
  column,
  compileCompared,
  compileCondition,
  compileTerm,
  equal,
  findShape,
  findVariable,
  isOfAnyType,
  type Names,
  type NodeVariable,
  type Variable,
} from './pattern-values.ts';
import { allOf } from './tree-builders.ts';

type MatchClause = Extract<Clause, { kind: 'match' }>;

/** `isAlone`: an entity that is returned alone is one value, too, and not the columns of its row. */
export function patternQuery(clauses: readonly Clause[], isAlone: boolean): Query {
  return new PatternCompiler(clauses, isAlone ? null : wholeRowVariable(clauses)).query(clauses);
}

/** Name of the rows that a write has made, and of a value that it has matched, by its number. */
export const madeRows = '#made';
export const valueName = (number: number): string => `#value ${number}`;

/** The RETURN of rows that were made: their nodes and edges have keys under their names, and the values follow. */
export function returnedQuery(
  clause: Projection,
  createdElements: readonly { readonly name: string; readonly kind: 'node' | 'edge'; readonly type: string }[],
  values: readonly { readonly type: ColumnType; readonly shape: EntityShape | null }[],
): Query {
  return new PatternCompiler([clause], null).overMade(clause, createdElements, values);
}

/** The name that RETURN shows as the columns of its row: alone, and of one type. */
function wholeRowVariable(clauses: readonly Clause[]): string | null {
  const lastClause = clauses.at(-1);
  if (lastClause?.kind !== 'return' || lastClause.distinct || lastClause.isAll || lastClause.items.length !== 1) return null;
  const [{ term }] = lastClause.items as [Item];
  if (term.kind !== 'variable' || clauses.some(({ kind }) => kind === 'with')) return null;
  for (const clause of clauses) {
    if (clause.kind !== 'match') continue;
    for (const { nodes, edges } of clause.chains) {
      const returnedNode = nodes.find(({ name }) => name === term.name);
      if (returnedNode) return !clause.optional && returnedNode.labels[0]?.length === 1 ? term.name : null;
      const returnedEdge = edges.find(({ name }) => name === term.name);
      if (returnedEdge)
        return !clause.optional && returnedEdge.hops === null && returnedEdge.types.length === 1 ? term.name : null;
    }
  }
  return null;
}

class PatternCompiler {
  /** Facts about nodes that are bound: they hold of the same nodes in an OPTIONAL MATCH. */
  #factsByVariable = new Map<string, readonly Fact[]>();
  readonly #wholeRowVariable: string | null;
  readonly #patternUses: PatternUses;
  readonly #patternChains: PatternChains;
  #aliasCount = 0;
  #isRowsNarrowed = false;

  constructor(clauses: readonly Clause[], asRow: string | null) {
    this.#wholeRowVariable = asRow;
    this.#patternUses = new PatternUses(clauses, asRow);
    this.#patternChains = new PatternChains(this.#patternUses, (prefix) => this.#newAlias(prefix));
  }

  query(patternClauses: readonly Clause[]): Query {
    let patternRows: Rows = { source: null, where: [], names: new Map() };
    for (const patternClause of patternClauses) {
      if (patternClause.kind === 'match') {
        patternRows = patternClause.optional
          ? this.#compileOptional(patternClause, patternRows)
          : this.#compileMatch(patternClause, patternRows);
      } else if (patternClause.kind === 'unwind') patternRows = this.#compileUnwind(patternClause, patternRows);
      else if (patternClause.kind === 'with') patternRows = this.#withClause(patternClause, patternRows);
      else return this.#returnQuery(patternClause, patternRows);
    }
    throw errorAt('REL_PARSE', 'a pattern ends in RETURN', patternClauses[0]!.location);
  }

  overMade(
    returnClause: Projection,
    createdElements: Parameters<typeof returnedQuery>[1],
    madeValues: Parameters<typeof returnedQuery>[2],
  ): Query {
    const { location } = returnClause;
    const madeColumns = [
      ...createdElements.map(({ name }) => ({ name, type: 'string' as const })),
      ...madeValues.map(({ type }, i) => ({ name: valueName(i), type })),
    ];
    let madeSource: Source = { kind: 'given', rows: madeRows, tables: [{ name: madeRows, columns: madeColumns }], location };
    const madeVariables = new Map<string, Variable>();
    const wantedEntities: WantedEntity[] = [];
    const entitiesAlias = this.#newAlias('entities');
    const usedNames = new Set([...returnClause.items, ...returnClause.orderBy].flatMap(({ term }) => namesIn(term)));
    for (const { name, kind, type } of createdElements) {
      if (!returnClause.isAll && !usedNames.has(name)) continue;
      const { properties } = this.#patternUses.usesOf(name);
      if (returnClause.isAll) properties.add(rowColumns.entity);
      const madeKey = column(madeRows, name, location);
      if (kind === 'node') {
        madeSource = leftJoinPattern(
          madeSource,
          { kind: 'table', name: type, alias: name, location },
          equal(madeKey, column(name, '_pk', location), location),
        );
        madeVariables.set(name, tableNode(name, type, location));
        continue;
      }
      const isEntity = properties.has(rowColumns.entity);
      const ownProperties = [...properties].filter((property) => property !== rowColumns.type);
      const readProperties = [...ownProperties, ...(isEntity ? [rowColumns.from, rowColumns.to] : [])];
      const edgeSource: Source = {
        kind: 'graph-rows',
        of: 'edges',
        types: [type],
        properties: readProperties,
        alias: name,
        location,
      };
      madeSource = leftJoinPattern(madeSource, edgeSource, equal(madeKey, column(name, rowColumns.key, location), location));
      const madeColumn = (columnName: string, where: Location = location): Expression =>
        column(
          isEntity && columnName === rowColumns.entity ? entitiesAlias : name,
          columnName === rowColumns.entity ? name : columnName,
          where,
        );
      madeVariables.set(name, {
        kind: 'edge',
        mark: madeColumn(rowColumns.key),
        key: madeColumn(rowColumns.key),
        table: null,
        isList: false,
        property: madeColumn,
      });
      if (!isEntity) continue;
      const madeEdge = {
        entity: column(name, rowColumns.entity, location),
        from: column(name, rowColumns.from, location),
        to: column(name, rowColumns.to, location),
      };
      wantedEntities.push({ name, as: 'relationship', edge: madeEdge, start: null, steps: [], known: [], types: [] });
    }
    for (const [i, { shape }] of madeValues.entries())
      madeVariables.set(valueName(i), { kind: 'value', value: column(madeRows, valueName(i), location), shape, isAny: false });
    if (wantedEntities.length > 0)
      madeSource = { kind: 'entities', input: madeSource, wanted: wantedEntities, alias: entitiesAlias, location };
    return this.#returnQuery(returnClause, { source: madeSource, where: [], names: madeVariables });
  }

  #newAlias(prefix: string): string {
    return `#${prefix}${++this.#aliasCount}`;
  }

  #compileMatch(matchClause: MatchClause, patternRows: Rows): Rows {
    const clauseFacts = matchFacts(matchClause);
    const matchedRows = this.#patternChains.join(matchClause.chains, patternRows, { facts: clauseFacts, isTyped: () => false });
    for (const [name, moreFacts] of clauseFacts)
      this.#factsByVariable.set(name, [...(this.#factsByVariable.get(name) ?? []), ...moreFacts]);
    if (matchClause.where === null) return matchedRows;
    return { ...matchedRows, where: [...matchedRows.where, compileCondition(matchClause.where, matchedRows.names)] };
  }

  #compileUnwind({ list: unwoundList, name, location }: Extract<Clause, { kind: 'unwind' }>, patternRows: Rows): Rows {
    if (patternRows.names.has(name)) throw errorAt('REL_PARSE', `${JSON.stringify(name)} is bound already`, location);
    const unwindAlias = this.#newAlias('unwind');
    const unwoundValue: Expression = call('#ANY', [column(unwindAlias, unwoundColumn, location)], location);
    const listShape = findShape(unwoundList, patternRows.names);
    const elementShape = listShape?.kind === 'list' ? listShape.of : null;
    const unwoundVariables = new Map(patternRows.names).set(name, {
      kind: 'value',
      value: unwoundValue,
      shape: elementShape,
      isAny: true,
    });
    const unwindInput = patternRows.source ?? { kind: 'values', rows: [[]], location };
    return {
      source: {
        kind: 'unwind',
        input: unwindInput,
        list: compileTerm(unwoundList, patternRows.names),
        alias: unwindAlias,
        location,
      },
      where: patternRows.where,
      names: unwoundVariables,
    };
  }

  /** The pattern by itself, joined by the shared nodes; conditions apply before a match counts as missing. */
  #compileOptional(optionalClause: MatchClause, patternRows: Rows): Rows {
    const { location } = optionalClause;
    const boundNode = (name: string | null): NodeVariable | undefined => {
      const knownVariable = name === null ? undefined : patternRows.names.get(name);
      if (knownVariable === undefined || knownVariable.kind === 'node') return knownVariable;
      throw errorAt('REL_PARSE', `${JSON.stringify(name)} is bound already, and is no node`, location);
    };
    // Conditions on values from before are checked where both sides are available.
    const outerConditions: Term[] = [];
    const movePart = <T extends PatternNode | PatternEdge>(part: T): T =>
      this.#moveOuterProperties(part, patternRows.names, outerConditions);
    const optionalChains = optionalClause.chains.map((chain) => ({
      ...chain,
      nodes: chain.nodes.map((factNode) => movePart(withKnownLabels(factNode, boundNode(factNode.name)))),
      edges: chain.edges.map(movePart),
    }));
    // Known facts about a shared node narrow the search for the pattern.
    const sharedNames = new Set(
      optionalChains.flatMap(({ nodes }) => nodes.flatMap(({ name }) => (boundNode(name) ? [name!] : []))),
    );
    const sharedFacts = new Map([...this.#factsByVariable].filter(([name]) => sharedNames.has(name)));
    const isTyped = (name: string): boolean => (boundNode(name)?.type ?? null) !== null;
    for (const [name, factList] of sharedFacts)
      for (const { property } of factList) this.#patternUses.usesOf(name).properties.add(property);
    const ownFacts = new Map([...sharedFacts, ...matchFacts(optionalClause)]);
    const aloneRows = this.#patternChains.join(
      optionalChains,
      { source: null, where: [], names: new Map() },
      { facts: ownFacts, isTyped },
    );
    const knownFacts = [...sharedFacts].flatMap(([name, list]) =>
      list.map(({ property, value, location: where }) => {
        const factNode = aloneRows.names.get(name) as NodeVariable;
        return equal(factNode.property(property, where), compileTerm(value, aloneRows.names), where);
      }),
    );
    const [firstShared] = sharedNames;
    const amongConditions =
      firstShared !== undefined && this.#narrowsRows(patternRows, sharedFacts.get(firstShared))
        ? [this.#amongRows(firstShared, aloneRows.names, patternRows, location)]
        : [];
    const optionalRows = { ...aloneRows, where: [...aloneRows.where, ...knownFacts, ...amongConditions] };
    const optionalAlias = this.#newAlias('optional');
    const { projection, names: innerVariables } = this.#passVariablesOn(
      [...optionalRows.names].map(([name, variable]) => ({ name, variable })),
      optionalAlias,
      location,
    );
    // Rows without a column are rows, too.
    if (projection.length === 0) projection.push({ kind: 'expression', expression: aloneRows.some, alias: '#some', location });
    const optionalSource: Source = {
      kind: 'subquery',
      query: patternBodyQuery(patternSelect(projection, optionalRows, location), location),
      alias: optionalAlias,
      columns: [],
      location,
    };
    const joinedVariables = new Map(patternRows.names);
    const joinConditions: Expression[] = [];
    for (const [name, variable] of innerVariables) {
      const outerVariable = boundNode(name);
      if (outerVariable === undefined) joinedVariables.set(name, variable);
      else if (variable.kind === 'node') joinConditions.push(...sameNodeTests(outerVariable, variable, location));
    }
    for (const outerCondition of [...outerConditions, ...(optionalClause.where === null ? [] : [optionalClause.where])])
      joinConditions.push(compileCondition(outerCondition, joinedVariables));
    const outerSource: Source = patternRows.source ?? { kind: 'values', rows: [[]], location };
    const joinedSource: Source = {
      kind: 'join',
      type: 'left',
      left: outerSource,
      right: optionalSource,
      on: allOf(joinConditions),
      using: null,
      location,
    };
    return { source: joinedSource, where: patternRows.where, names: joinedVariables };
  }

  /** Moves properties whose values name earlier variables into conditions. */
  #moveOuterProperties<T extends PatternNode | PatternEdge>(patternPart: T, outerVariables: Names, outerConditions: Term[]): T {
    const isOuterValue = (value: Term): boolean => namesIn(value).some((name) => outerVariables.has(name));
    const outerProperties = patternPart.properties.filter(({ value }) => isOuterValue(value));
    if (outerProperties.length === 0) return patternPart;
    const namedPart = patternPart.name ?? this.#newAlias('part');
    for (const { name, value } of outerProperties) {
      const { location } = value;
      this.#patternUses.usesOf(namedPart).properties.add(name);
      const outerProperty: Term = { kind: 'property', of: { kind: 'variable', name: namedPart, location }, name, location };
      outerConditions.push({ kind: 'compare', op: '=', left: outerProperty, right: value, location });
    }
    return { ...patternPart, name: namedPart, properties: patternPart.properties.filter(({ value }) => !isOuterValue(value)) };
  }

  /** Whether it is worth while to work out first which nodes there are. It is done once: each time doubles the work before it. */
  #narrowsRows({ source, where }: Rows, facts: readonly Fact[] = []): boolean {
    if (this.#isRowsNarrowed || facts.some(({ property }) => property === 'id')) return false;
    this.#isRowsNarrowed = where.length > 0 || source?.kind === 'join' || source?.kind === 'walk' || source?.kind === 'subquery';
    return this.#isRowsNarrowed;
  }

  /** A condition that the node is one of the bound ones. */
  #amongRows(name: string, innerVariables: Names, patternRows: Rows, location: Location): Expression {
    const [innerNode, outerNode] = [innerVariables.get(name) as NodeVariable, patternRows.names.get(name) as NodeVariable];
    const nodeIdItem: ProjectionItem = { kind: 'expression', expression: outerNode.id, alias: '#id', location };
    return {
      kind: 'in-query',
      operand: innerNode.id,
      query: patternBodyQuery(patternSelect([nodeIdItem], patternRows, location), location),
      negated: false,
      location,
    };
  }

  #withClause(written: Projection, rows: Rows): Rows {
    const clause = expandStar(written, rows.names);
    const { location } = clause;
    const alias = this.#newAlias('with');
    const grouped = clause.items.some(({ term }) => isAggregate(term));
    const carried = clause.items.map((item) => ({
      item,
      variable: item.term.kind === 'variable' ? findVariable(item.term.name, rows.names, item.term.location) : undefined,
    }));
    const passed = this.#passVariablesOn(
      carried.flatMap(({ item: { name }, variable }) => (variable === undefined ? [] : [{ name, variable }])),
      alias,
      location,
    );
    const facts = clause.items.map(
      ({ name, term }) => [name, term.kind === 'variable' ? this.#factsByVariable.get(term.name) : null] as const,
    );
    this.#factsByVariable = new Map(facts.flatMap(([name, list]) => (list ? [[name, list]] : [])));
    const names = new Map(passed.names);
    const values: ProjectionItem[] = [];
    for (const { item, variable } of carried) {
      if (variable !== undefined && variable.kind !== 'value') continue;
      if (names.has(item.name)) throw errorAt('REL_PARSE', `${JSON.stringify(item.name)} is given twice`, item.term.location);
      values.push({ kind: 'expression', expression: compileTerm(item.term, rows.names), alias: item.name, location });
      const isAny = isOfAnyType(item.term, rows.names);
      const value = column(alias, item.name, location);
      const shape = findShape(item.term, rows.names);
      names.set(item.name, { kind: 'value', value: isAny ? call('#ANY', [value], location) : value, shape, isAny });
    }
    const projection = [...passed.projection, ...values];
    const groups = grouped || (clause.distinct && passed.projection.length > 0);
    const keys = groups ? [...passed.projection, ...values.filter((_, i) => !isAggregate(valueItems(carried)[i]!.term))] : [];
    const selectTail = {
      ...patternSelect(projection, rows, location),
      distinct: clause.distinct && !groups,
      groupBy: keys.flatMap(itemExpressions),
    };
    const inner: Query = { ...patternBodyQuery(selectTail, location), ...this.#orderAndPage(clause, rows.names) };
    const after: Rows = { source: { kind: 'subquery', query: inner, alias, columns: [], location }, where: [], names };
    return clause.where === null ? after : { ...after, where: [compileCondition(clause.where, names)] };
  }

  /** Nodes and edges as columns: their keys, and the properties read. */
  #passVariablesOn(
    variables: readonly { readonly name: string; readonly variable: Variable }[],
    alias: string,
    location: Location,
  ): { projection: ProjectionItem[]; names: Names } {
    const projection: ProjectionItem[] = [];
    const passedVariables = new Map<string, Variable>();
    for (const { name, variable } of variables) {
      if (variable.kind === 'value') continue;
      if (passedVariables.has(name)) throw errorAt('REL_PARSE', `${JSON.stringify(name)} is given twice`, location);
      const passedColumnName = (property: string): string => `${name}.${property}`;
      const passColumn = (expression: Expression, as: string): ColumnRef => {
        projection.push({ kind: 'expression', expression, alias: passedColumnName(as), location });
        return column(alias, passedColumnName(as), location);
      };
      const { properties } = this.#patternUses.usesOf(name);
      const isPassedProperty = (property: string): boolean => variable.kind !== 'path' || property === rowColumns.entity;
      for (const property of properties)
        if (isPassedProperty(property)) passColumn(variable.property(property, location), property);
      const property = (wanted: string, where: Location): Expression => column(alias, passedColumnName(wanted), where);
      if (variable.kind === 'path') {
        passedVariables.set(name, { kind: 'path', property });
        continue;
      }
      if (variable.kind === 'edge') {
        const { mark, key, isList } = variable;
        passedVariables.set(name, {
          kind: 'edge',
          mark: passColumn(mark, '#edge'),
          key: key && passColumn(key, '#key'),
          table: null,
          isList,
          property,
        });
        continue;
      }
      const { labels, id, type } = variable;
      const hasEntity = properties.has(rowColumns.entity);
      const rowIdentity = { id: passColumn(id, '#id'), type: type && passColumn(type, '#type of row') };
      passedVariables.set(name, { kind: 'node', labels, ...rowIdentity, table: null, hasEntity, property });
    }
    return { projection, names: passedVariables };
  }

  #returnQuery(projection: Projection, patternRows: Rows): Query {
    const returnClause = expandStar(projection, patternRows.names);
    const { location } = returnClause;
    const isGrouped = returnClause.items.some(({ term }) => isAggregate(term));
    const [onlyItem] = returnClause.items;
    const wholeRow =
      onlyItem?.term.kind === 'variable' && onlyItem.term.name === this.#wholeRowVariable
        ? patternRows.names.get(onlyItem.term.name)
        : undefined;
    if ((wholeRow?.kind === 'node' || wholeRow?.kind === 'edge') && wholeRow.table !== null) {
      const starItem: ProjectionItem = { kind: 'star', table: wholeRow.table, location };
      return {
        ...patternBodyQuery(patternSelect([starItem], patternRows, location), location),
        ...this.#orderAndPage(returnClause, patternRows.names),
        oneInstant: true,
      };
    }
    const returnedItems = returnClause.items.map(
      (returnedItem): ProjectionItem => ({
        kind: 'expression',
        expression: compileTerm(returnedItem.term, patternRows.names),
        alias: returnedItem.name,
        location: returnedItem.term.location,
      }),
    );
    const returnedShapes = returnClause.items.map(({ term }) => findShape(term, patternRows.names));
    // Groups are made by what entities are ordered by, too: json has no order.
    const groupsRows = isGrouped || (returnClause.distinct && returnedShapes.some((shape) => shape !== null));
    const groupBy = returnedItems.flatMap((returnedItem, i) => {
      const { term } = returnClause.items[i]!;
      if (!groupsRows || isAggregate(term)) return [];
      return term.kind === 'variable'
        ? [...itemExpressions(returnedItem), compileCompared(term, patternRows.names)]
        : itemExpressions(returnedItem);
    });
    const selectTail = {
      ...patternSelect(returnedItems, patternRows, location),
      distinct: returnClause.distinct && !groupsRows,
      groupBy,
    };
    const entityShapes = returnedShapes.some((shape) => shape !== null) ? { entities: returnedShapes } : {};
    return {
      ...patternBodyQuery(selectTail, location),
      ...this.#orderAndPage(returnClause, patternRows.names),
      ...entityShapes,
      oneInstant: true,
    };
  }

  #orderAndPage({ orderBy, skip, limit, items }: Projection, orderVariables: Names): Pick<Query, 'orderBy' | 'limit' | 'offset'> {
    const orderKey = (term: Term): Expression => {
      const item = itemNamed(term, items);
      if (item === undefined) return compileCompared(term, orderVariables);
      return item.term.kind === 'variable' ? compileCompared(item.term, orderVariables) : column(null, item.name, term.location);
    };
    const orderItems = ({ term, descending }: Projection['orderBy'][number]): OrderItem[] => {
      const itemBy = (expression: Expression): OrderItem => ({ expression, descending, collate: 'codepoint', nullsFirst: false });
      const of = itemNamed(term, items)?.term ?? term;
      if (!isOfAnyType(of, orderVariables)) return [itemBy(orderKey(term))];
      // Numbers by their size, and then texts: no plan knows which of them they are.
      const value = compileTerm(of, orderVariables);
      return ['#NUMBER', '#TOSTRING'].map((key) => itemBy(call(key, [value], term.location)));
    };
    return {
      orderBy: orderBy.flatMap(orderItems),
      limit,
      offset: skip,
    };
  }
}

/** Replaces `*` by the names that it stands for, in their order, before the items. */
function expandStar(projectionClause: Projection, starVariables: Names): Projection {
  if (!projectionClause.isAll) return projectionClause;
  const { location } = projectionClause;
  const starItems = [...starVariables.keys()]
    .sort(compareText)
    .map((name): Item => ({ name, term: { kind: 'variable', name, location } }));
  if (starItems.length === 0) throw errorAt('REL_PARSE', 'there are no variables here for *', location);
  return { ...projectionClause, isAll: false, items: [...starItems, ...projectionClause.items] };
}

function valueItems(carriedItems: readonly { readonly item: Item; readonly variable: Variable | undefined }[]): readonly Item[] {
  return carriedItems.flatMap(({ item, variable }) => (variable === undefined || variable.kind === 'value' ? [item] : []));
}

function itemExpressions(item: ProjectionItem): readonly Expression[] {
  return item.kind === 'expression' ? [item.expression] : [];
}

/** A node of an OPTIONAL MATCH that is bound has the types that it was bound with. */
function withKnownLabels(patternNode: PatternNode, knownNode: NodeVariable | undefined): PatternNode {
  if (knownNode === undefined || knownNode.labels.length === 0) return patternNode;
  return { ...patternNode, labels: [knownNode.labels, ...patternNode.labels] };
}

function sameNodeTests(firstNode: NodeVariable, secondNode: NodeVariable, location: Location): Expression[] {
  const nodeTests = [equal(firstNode.id, secondNode.id, location)];
  if (firstNode.type !== null && secondNode.type !== null) nodeTests.push(equal(firstNode.type, secondNode.type, location));
  return nodeTests;
}

/** Facts by `=` that a clause states about single nodes: in braces, or in its condition, joined by AND. */
function matchFacts({ chains, where }: MatchClause): ReadonlyMap<string, readonly Fact[]> {
  const factsByName = new Map<string, Fact[]>();
  const addFact = (name: string, fact: Fact): void => void factsByName.set(name, [...(factsByName.get(name) ?? []), fact]);
  for (const { name, properties, location } of chains.flatMap(({ nodes }) => nodes)) {
    if (name === null) continue;
    for (const { name: factProperty, value: factValue } of properties)
      if (factValue.kind === 'literal') addFact(name, { property: factProperty, value: factValue, location });
  }
  const readCondition = (condition: Term): void => {
    if (condition.kind === 'and') return [condition.left, condition.right].forEach(readCondition);
    if (condition.kind !== 'compare' || condition.op !== '=') return;
    const { left, right, location } = condition;
    const [property, value] = left.kind === 'property' ? [left, right] : [right, left];
    if (property.kind === 'property' && property.of.kind === 'variable' && value.kind === 'literal')
      addFact(property.of.name, { property: property.name, value, location });
  };
  if (where !== null) readCondition(where);
  return factsByName;
}

/** A row that is not there, or not to be seen, is NULL. */
function leftJoinPattern(left: Source, right: Source, on: Expression): Source {
  return { kind: 'join', type: 'left', left, right, on, using: null, location: right.location };
}

function patternSelect(projection: readonly ProjectionItem[], { source, where }: Rows, location: Location): Select {
  return {
    kind: 'select',
    distinct: false,
    projection,
    from: source ?? { kind: 'values', rows: [[]], location },
    where: where.length === 0 ? null : both(where, location),
    groupBy: [],
    window: null,
    having: null,
    rankBy: [],
    compute: [],
    location,
  };
}

function patternBodyQuery(body: Select, location: Location): Query {
  return { with: [], body, asOf: null, orderBy: [], limit: null, offset: null, after: null, facets: [], location };
}

/**
 * Edges of rows whose type has graph triggers, in the commit of the rows. An edge is a row of the link type, in the path of its row:
 *
 *   _pk            digest of the type, the row's key, the link type and both ends
 *   from_id, to_id texts of the ends: an array is as many ends, and NULL or an empty text is none
 *   derived_from   system_from of the row's version, 16 hex digits
 *   subject        the subject of the row
 *
 * Every version of a row has edges of its own bounds and its own kind (put, remainder, end), so a read at any instants of both
 * axes finds the edges of the rows that it finds there. Where a row names other ends from now on, the version that ends its old
 * edge holds nowhere: the former edge is no longer claimed of the row either. Edges fire no triggers. Pure.
 */
import type { EntryDraft, Provenance, RowsBody, TypeDefinition } from '../../../log/entries/entry.ts';
import { rowOp } from '../../../log/entries/entry.ts';
import type { NextPosition } from '../../../log/log-store.ts';
import type { Cell } from '../../../log/values/value.ts';
import type { CatalogReader } from '../../access-paths.ts';
import { typeDraft } from '../../catalog/commands.ts';
import { subjectProperty } from '../../catalog/subject-property.ts';
import type { DecideContext } from '../../decision.ts';
import type { TenantRows } from '../tables/tenant-rows.ts';
import { EdgeEnds, type Ends, type Refusal, refusal } from './edge-ends.ts';
import { type EdgeRow, LinkRows, versionName } from './link-rows.ts';
import { linkTypeOf } from './link-type.ts';
import type { RowCells } from '../cells/row-cells.ts';
import { subjectText } from '../checks/row-subjects.ts';
import type { OpenVersion } from '../checks/version-plan.ts';

/** Edge versions of one command: a turn of the event loop makes them. */
const edgesPerCommand = 16_384;

const fired: Provenance = { source: 'annals', method: 'graph-trigger', confidence: 1, derivedFrom: null };

/** A version that a row of the command becomes. */
export interface RowVersion extends Pick<OpenVersion, 'from' | 'to' | 'cells'> {
  readonly op: number;
  readonly systemFrom: bigint;
}

interface Wanted extends Ends {
  readonly closed: OpenVersion[];
  readonly written: RowVersion[];
}

/** Where rows are written, and under which types. */
export interface EdgeContext {
  readonly catalog: CatalogReader;
  readonly rows: TenantRows;
  readonly context: DecideContext;
  /** Place of the first row. */
  readonly at: NextPosition;
}

export class RowEdges {
  readonly #type: TypeDefinition;
  readonly #cells: RowCells;
  readonly #ends: EdgeEnds;
  readonly #context: EdgeContext;
  readonly #links = new Map<string, LinkRows | Refusal>();
  #versions = 0;

  /** `type`: as it stands once its rows are written. */
  constructor(type: TypeDefinition, cells: RowCells, edgeContext: EdgeContext) {
    this.#type = type;
    this.#cells = cells;
    this.#ends = new EdgeEnds(type, cells, edgeContext.context.entry.path);
    this.#context = edgeContext;
  }

  /** One row: the versions that it closes and those that it becomes. Says why its edges can't be; then nothing has happened. */
  follow(key: string, closed: readonly OpenVersion[], written: readonly RowVersion[]): Refusal | null {
    const wanted = new Map<string, Wanted>();
    for (const version of written) {
      const ends = this.#ends.endsOf(key, version.cells);
      if ('code' in ends) return ends;
      for (const each of ends) wantedOf(wanted, each).written.push(version);
    }
    for (const version of closed) {
      const ends = this.#ends.endsOf(key, version.cells);
      // A version that was stored had its edges, or was written before its type had any.
      if (!('code' in ends)) for (const each of ends) wantedOf(wanted, each).closed.push(version);
    }
    const planned: { readonly link: LinkRows; readonly rows: EdgeRow[] }[] = [];
    let versions = this.#versions;
    for (const each of wanted.values()) {
      const rows = this.#rowsOf(each);
      if (rows === null) continue;
      if ('code' in rows) return rows;
      versions += rows.rows.length;
      if (versions > edgesPerCommand) {
        return refusal(
          'REL_UNPROCESSABLE',
          `the rows of one command have more than ${edgesPerCommand} edges: send fewer at once`,
        );
      }
      const why = rows.link.refusalOf(rows.rows);
      if (why !== null) return refusal('REL_ACL', why);
      planned.push(rows);
    }
    for (const { link, rows } of planned) for (const row of rows) link.add(row);
    this.#versions = versions;
    return null;
  }

  /** Entries for all that followed, the first at a position. Edges of rows that are sealed by themselves are so, too: `sealed` has their system_from. */
  drafts(first: number, sealed: ReadonlySet<bigint>): EntryDraft[] {
    const drafts: EntryDraft[] = [];
    const { context } = this.#context;
    let position = first;
    for (const link of this.#links.values()) {
      if (!(link instanceof LinkRows) || link.length === 0) continue;
      const { definition, isNew, name } = link;
      if (isNew) {
        drafts.push(typeDraft(definition, context));
        position++;
      }
      const written = link.bodyAt(position, new Set(Array.from(sealed, versionName)));
      const body: RowsBody = { kind: 'rows', type: name, ...written, provenance: fired };
      drafts.push({ context: context.entry, body });
      position += link.length;
    }
    return drafts;
  }

  /** Null where nothing is to be written. */
  #rowsOf(wanted: Wanted): { readonly link: LinkRows; readonly rows: EdgeRow[] } | Refusal | null {
    const { closed, written, key, source, target } = wanted;
    const link = this.#linkOf(wanted.link);
    // A link type that cannot hold edges has none to end.
    if ('code' in link) return written.length === 0 && link.code !== 'REL_ACL' ? null : link;
    const spans = [...closed, ...written];
    const touched = link.open(key).filter((edge) => spans.some(({ from, to }) => edge.from < to && from < edge.to));
    const row = (of: Pick<EdgeRow, 'from' | 'to' | 'op' | 'derivedFrom' | 'subject' | 'closes' | 'base'>): EdgeRow => ({
      key,
      source,
      target,
      ...of,
    });
    if (written.length === 0) {
      const ended = touched.filter(({ from, to }) => from < to);
      if (ended.length === 0) return null;
      return {
        link,
        rows: ended.map((edge) => {
          const { from, derivedFrom, subject, base } = edge;
          return row({ from, to: from, op: rowOp.delete, derivedFrom, subject, base, closes: [edge] });
        }),
      };
    }
    const byStart = touched.toSorted((a, b) => (a.from < b.from ? 1 : a.from > b.from ? -1 : 0));
    /** The edge that holds when a version begins lends it its other cells; else the last one that is touched. */
    const baseAt = (from: bigint): number =>
      (byStart.find((edge) => edge.from <= from && from < edge.to) ?? byStart[0])?.base ?? -1;
    return {
      link,
      rows: written.map(({ from, to, op, systemFrom, cells }, i) => {
        const derivedFrom = versionName(systemFrom);
        const subject = this.#subjectOf(cells);
        return row({ from, to, op, derivedFrom, subject, base: baseAt(from), closes: i === 0 ? touched : [] });
      }),
    };
  }

  #subjectOf(cells: number): string | null {
    const property = subjectProperty(this.#type);
    const cell: Cell = property === null ? null : this.#cells.cell(cells, property);
    return subjectText(cell);
  }

  #linkOf(name: string): LinkRows | Refusal {
    let link = this.#links.get(name);
    if (link === undefined) this.#links.set(name, (link = this.#makeLink(name)));
    return link;
  }

  #makeLink(name: string): LinkRows | Refusal {
    const { catalog, rows, context } = this.#context;
    const masked = maskedEnd(this.#type, name);
    if (masked !== null) return masked;
    const why = context.refusalOf?.(name) ?? null;
    if (why !== null) return refusal('REL_ACL', `its edge of ${JSON.stringify(name)} can't be written: ${why.message}`);
    const known = catalog.type(name);
    // Each definition that this command makes counts.
    const newLinkTypes = [...this.#links.values()].filter((link) => link instanceof LinkRows && link.isNew).length;
    const version = Math.max(catalog.ontologyVersion, this.#type.ontologyVersion) + newLinkTypes + 1;
    const definition = linkTypeOf(name, known, this.#type, rows, version);
    if (typeof definition === 'string') return refusal('REL_CONFLICT', definition);
    return new LinkRows({ definition, known, rows, context, at: this.#context.at });
  }
}

/** An edge would show what is masked in its row. */
function maskedEnd({ graphTriggers, properties }: TypeDefinition, link: string): Refusal | null {
  for (const { linkType, sourceField, targetField } of graphTriggers) {
    const field = [sourceField, targetField].find((name) => Object.hasOwn(properties, name) && properties[name]!.masked);
    if (linkType === link && field !== undefined) {
      return refusal(
        'REL_MASKED_COLUMN',
        `its edge of ${JSON.stringify(link)} would show the masked column ${JSON.stringify(field)}`,
      );
    }
  }
  return null;
}

function wantedOf(wanted: Map<string, Wanted>, ends: Ends): Wanted {
  const name = `${ends.key} ${ends.link}`;
  let wantedEdge = wanted.get(name);
  if (wantedEdge === undefined) wanted.set(name, (wantedEdge = { ...ends, closed: [], written: [] }));
  return wantedEdge;
}

/** Whether edges have to be thought of at all. */
export function hasEdges(type: TypeDefinition | undefined): boolean {
  return type !== undefined && type.graphTriggers.length > 0;
}

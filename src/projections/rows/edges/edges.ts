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
const edgesPerCommandMax = 16_384;

const graphTriggerSource: Provenance = { source: 'annals', method: 'graph-trigger', confidence: 1, derivedFrom: null };

/** A version that a row of the command becomes. */
export interface RowVersion extends Pick<OpenVersion, 'from' | 'to' | 'cells'> {
  readonly op: number;
  readonly systemFrom: bigint;
}

interface WantedEdge extends Ends {
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
  readonly #edgeSourceType: TypeDefinition;
  readonly #rowCells: RowCells;
  readonly #edgeEnds: EdgeEnds;
  readonly #context: EdgeContext;
  readonly #linksByName = new Map<string, LinkRows | Refusal>();
  #edgeVersionCount = 0;

  /** `type`: as it stands once its rows are written. */
  constructor(type: TypeDefinition, rowCells: RowCells, edgeContext: EdgeContext) {
    this.#edgeSourceType = type;
    this.#rowCells = rowCells;
    this.#edgeEnds = new EdgeEnds(type, rowCells, edgeContext.context.entry.path);
    this.#context = edgeContext;
  }

  /** One row: the versions that it closes and those that it becomes. Says why its edges can't be; then nothing has happened. */
  follow(key: string, closed: readonly OpenVersion[], written: readonly RowVersion[]): Refusal | null {
    const wantedEdges = new Map<string, WantedEdge>();
    for (const rowVersion of written) {
      const edgeEnds = this.#edgeEnds.endsOf(key, rowVersion.cells);
      if ('code' in edgeEnds) return edgeEnds;
      for (const wantedEdge of edgeEnds) wantedEdgeOf(wantedEdges, wantedEdge).written.push(rowVersion);
    }
    for (const version of closed) {
      const edgeEnds = this.#edgeEnds.endsOf(key, version.cells);
      // A version that was stored had its edges, or was written before its type had any.
      if (!('code' in edgeEnds)) for (const wantedEdge of edgeEnds) wantedEdgeOf(wantedEdges, wantedEdge).closed.push(version);
    }
    const plannedEdges: { readonly link: LinkRows; readonly rows: EdgeRow[] }[] = [];
    let edgeVersions = this.#edgeVersionCount;
    for (const each of wantedEdges.values()) {
      const edgeRows = this.#edgeRowsOf(each);
      if (edgeRows === null) continue;
      if ('code' in edgeRows) return edgeRows;
      edgeVersions += edgeRows.rows.length;
      if (edgeVersions > edgesPerCommandMax) {
        return refusal(
          'REL_UNPROCESSABLE',
          `the rows of one command have more than ${edgesPerCommandMax} edges: send fewer at once`,
        );
      }
      const edgeRefusal = edgeRows.link.refusalOf(edgeRows.rows);
      if (edgeRefusal !== null) return refusal('REL_ACL', edgeRefusal);
      plannedEdges.push(edgeRows);
    }
    for (const { link: linkRows, rows } of plannedEdges) for (const edgeRow of rows) linkRows.add(edgeRow);
    this.#edgeVersionCount = edgeVersions;
    return null;
  }

  /** Entries for all that followed, the first at a position. Edges of rows that are sealed by themselves are so, too: `sealedRowTimes` has their system_from. */
  drafts(first: number, sealedRowTimes: ReadonlySet<bigint>): EntryDraft[] {
    const edgeDrafts: EntryDraft[] = [];
    const { context } = this.#context;
    let edgePosition = first;
    for (const linkRows of this.#linksByName.values()) {
      if (!(linkRows instanceof LinkRows) || linkRows.length === 0) continue;
      const { definition, isNew, name } = linkRows;
      if (isNew) {
        edgeDrafts.push(typeDraft(definition, context));
        edgePosition++;
      }
      const linkRowsBody = linkRows.bodyAt(edgePosition, new Set(Array.from(sealedRowTimes, versionName)));
      const edgeRowsBody: RowsBody = { kind: 'rows', type: name, ...linkRowsBody, provenance: graphTriggerSource };
      edgeDrafts.push({ context: context.entry, body: edgeRowsBody });
      edgePosition += linkRows.length;
    }
    return edgeDrafts;
  }

  /** Null where nothing is to be written. */
  #edgeRowsOf(wantedEdge: WantedEdge): { readonly link: LinkRows; readonly rows: EdgeRow[] } | Refusal | null {
    const { closed, written, key, source, target } = wantedEdge;
    const linkRows = this.#linkRowsOf(wantedEdge.link);
    // A link type that cannot hold edges has none to end.
    if ('code' in linkRows) return written.length === 0 && linkRows.code !== 'REL_ACL' ? null : linkRows;
    const versionSpans = [...closed, ...written];
    const touchedEdges = linkRows
      .open(key)
      .filter((openEdge) => versionSpans.some(({ from, to }) => openEdge.from < to && from < openEdge.to));
    const edgeRowFrom = (of: Pick<EdgeRow, 'from' | 'to' | 'op' | 'derivedFrom' | 'subject' | 'closes' | 'base'>): EdgeRow => ({
      key,
      source,
      target,
      ...of,
    });
    if (written.length === 0) {
      const endedEdges = touchedEdges.filter(({ from, to }) => from < to);
      if (endedEdges.length === 0) return null;
      return {
        link: linkRows,
        rows: endedEdges.map((openEdge) => {
          const { from, derivedFrom, subject, base } = openEdge;
          return edgeRowFrom({ from, to: from, op: rowOp.delete, derivedFrom, subject, base, closes: [openEdge] });
        }),
      };
    }
    const edgesByStart = touchedEdges.toSorted((a, b) => (a.from < b.from ? 1 : a.from > b.from ? -1 : 0));
    /** The edge that holds when a version begins lends it its other cells; else the last one that is touched. */
    const edgeBaseAt = (from: bigint): number =>
      (edgesByStart.find((edge) => edge.from <= from && from < edge.to) ?? edgesByStart[0])?.base ?? -1;
    return {
      link: linkRows,
      rows: written.map(({ from, to, op, systemFrom, cells }, i) => {
        const derivedFrom = versionName(systemFrom);
        const subject = this.#edgeSubjectOf(cells);
        return edgeRowFrom({ from, to, op, derivedFrom, subject, base: edgeBaseAt(from), closes: i === 0 ? touchedEdges : [] });
      }),
    };
  }

  #edgeSubjectOf(cells: number): string | null {
    const subjectColumn = subjectProperty(this.#edgeSourceType);
    const subjectCell: Cell = subjectColumn === null ? null : this.#rowCells.cell(cells, subjectColumn);
    return subjectText(subjectCell);
  }

  #linkRowsOf(linkName: string): LinkRows | Refusal {
    let linkRows = this.#linksByName.get(linkName);
    if (linkRows === undefined) this.#linksByName.set(linkName, (linkRows = this.#makeLinkRows(linkName)));
    return linkRows;
  }

  #makeLinkRows(linkName: string): LinkRows | Refusal {
    const { catalog, rows, context } = this.#context;
    const maskedRefusal = maskedEndRefusal(this.#edgeSourceType, linkName);
    if (maskedRefusal !== null) return maskedRefusal;
    const linkRefusal = context.refusalOf?.(linkName) ?? null;
    if (linkRefusal !== null)
      return refusal('REL_ACL', `its edge of ${JSON.stringify(linkName)} can't be written: ${linkRefusal.message}`);
    const knownLinkType = catalog.type(linkName);
    // Each definition that this command makes counts.
    const newLinkTypes = [...this.#linksByName.values()].filter((link) => link instanceof LinkRows && link.isNew).length;
    const linkOntologyVersion = Math.max(catalog.ontologyVersion, this.#edgeSourceType.ontologyVersion) + newLinkTypes + 1;
    const linkDefinition = linkTypeOf(linkName, knownLinkType, this.#edgeSourceType, rows, linkOntologyVersion);
    if (typeof linkDefinition === 'string') return refusal('REL_CONFLICT', linkDefinition);
    return new LinkRows({ definition: linkDefinition, known: knownLinkType, rows, context, at: this.#context.at });
  }
}

/** An edge would show what is masked in its row. */
function maskedEndRefusal({ graphTriggers, properties }: TypeDefinition, linkName: string): Refusal | null {
  for (const { linkType, sourceField, targetField } of graphTriggers) {
    const maskedField = [sourceField, targetField].find((name) => Object.hasOwn(properties, name) && properties[name]!.masked);
    if (linkType === linkName && maskedField !== undefined) {
      return refusal(
        'REL_MASKED_COLUMN',
        `its edge of ${JSON.stringify(linkName)} would show the masked column ${JSON.stringify(maskedField)}`,
      );
    }
  }
  return null;
}

function wantedEdgeOf(wantedEdges: Map<string, WantedEdge>, edgeEnds: Ends): WantedEdge {
  const wantedEdgeName = `${edgeEnds.key} ${edgeEnds.link}`;
  let wantedEdge = wantedEdges.get(wantedEdgeName);
  if (wantedEdge === undefined) wantedEdges.set(wantedEdgeName, (wantedEdge = { ...edgeEnds, closed: [], written: [] }));
  return wantedEdge;
}

/** Whether edges have to be thought of at all. */
export function hasEdges(type: TypeDefinition | undefined): boolean {
  return type !== undefined && type.graphTriggers.length > 0;
}

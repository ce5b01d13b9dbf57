/** Views as sources: the query that a name stands for. */
import { lexStatement } from './sql-lexer.ts';
import { parseLexed } from './sql-parser.ts';
import type { AccessPaths, ViewRecord } from '../../projections/access-paths.ts';
import type { ViewDefinition } from '../binding/environment.ts';

/** Its text was understood where it was made, which may have been on a door of the wide dialect. A view's own AS OF gives way to that of the statement. */
export function viewNamed(views: readonly ViewRecord[], name: string): ViewDefinition | undefined {
  const nearestDefinition = nearestView(views, name);
  if (!nearestDefinition) return undefined;
  const { statement, parameters } = parseLexed(lexStatement(nearestDefinition.sql), 'wide');
  return statement.kind === 'query' ? { query: statement.query, literals: parameters } : undefined;
}

/**
 * Tells the views of one reader at one time from those at another: views come with rising positions, so that as many with the
 * same last one are the same.
 */
export function viewsKey(views: readonly ViewRecord[]): string {
  return `${views.length}.${views.at(-1)?.position ?? ''}`;
}

/** The views that a reader can name: one for each name, and none that a type of its name hides. */
export function namedViews({ views, catalog }: Pick<AccessPaths, 'views' | 'catalog'>): readonly ViewRecord[] {
  const viewNames = [...new Set(views.map(({ name }) => name))].filter((name) => catalog.type(name) === undefined);
  return viewNames.map((name) => nearestView(views, name)!);
}

/** When two views share a name, the one of the nearer path counts. */
export function nearestView(viewRecords: readonly ViewRecord[], name: string): ViewRecord | undefined {
  let nearestOwned: ViewRecord | undefined;
  for (const viewRecord of viewRecords) {
    if (viewRecord.name === name && (!nearestOwned || (viewRecord.owner ?? '').length > (nearestOwned.owner ?? '').length))
      nearestOwned = viewRecord;
  }
  return nearestOwned;
}

/** CREATE and DROP of views to entries. */
import { ServiceError } from '../../errors.ts';
import type { NextPosition } from '../../log/log-store.ts';
import { checkIdentifier, checkText, tenantOf } from '../../log/values/value.ts';
import type { CatalogReader, ViewRecord } from '../access-paths.ts';
import type { CreateView, DropView } from '../command.ts';
import { type DecideContext, type Decision, decideOne, sealerOf } from '../decision.ts';

const refreshSecsMax = 31_536_000;
const viewsMax = 1_000;
const relationExists = { reason: 'relation-exists' } as const;

/** `views` are those of the branch. A view and a type of one tenant never share a name; another path's views stay hidden. */
export function decideCreateView(
  command: CreateView,
  catalog: CatalogReader,
  views: readonly ViewRecord[],
  context: DecideContext,
  next: NextPosition,
): Decision {
  const { name, sql, refreshSecs, replaces: replacesView = false } = command;
  checkIdentifier(name, 'the name of a view');
  checkText(sql, 'the query of a view');
  if (!Number.isInteger(refreshSecs) || refreshSecs < 0 || refreshSecs > refreshSecsMax) {
    throw new ServiceError('REL_INVALID', `REFRESH INCREMENTAL EVERY takes 1 to ${refreshSecsMax} seconds`);
  }
  if (catalog.type(name) !== undefined)
    throw new ServiceError('REL_CONFLICT', `${JSON.stringify(name)} is a type`, relationExists);
  const ownViews = views.filter(({ owner }) => owner === context.entry.path);
  const existingView = ownViews.find((ownView) => ownView.name === name);
  if (existingView !== undefined) {
    if (existingView.sql === sql && existingView.refreshSecs === refreshSecs) return decideOne('create-view', name, [], next);
    if (!replacesView || existingView.refreshSecs !== 0)
      throw new ServiceError('REL_CONFLICT', `the view ${JSON.stringify(name)} exists with another definition`, relationExists);
  } else if (ownViews.length >= viewsMax) {
    throw new ServiceError('REL_CONFLICT', `an organisation path has at most ${viewsMax} views`);
  }
  const viewBody = { kind: 'view', name, sql: sealerOf(context)(sql), refreshSecs } as const;
  return decideOne('create-view', name, [{ context: context.entry, body: viewBody }], next);
}

/** Throws REL_CONFLICT where a view of the tenant has the name: the type would take its place for readers of the view. */
export function refuseNameOfView(refusedName: string, views: readonly ViewRecord[], { entry }: DecideContext): void {
  const tenant = tenantOf(entry.path);
  if (views.some((knownView) => knownView.name === refusedName && tenantOf(knownView.owner) === tenant)) {
    throw new ServiceError(
      'REL_CONFLICT',
      `${JSON.stringify(refusedName)} is a view: drop it first, or choose another name`,
      relationExists,
    );
  }
}

/** `views` are those of the branch. A view of another path, above or below, gets the same answer as none. */
export function decideDropView(
  { name }: DropView,
  views: readonly ViewRecord[],
  context: DecideContext,
  next: NextPosition,
): Decision {
  checkIdentifier(name, 'the name of a view');
  if (!views.some((view) => view.owner === context.entry.path && view.name === name)) {
    throw new ServiceError('REL_NOT_FOUND', `there is no view ${JSON.stringify(name)} of this organisation path`);
  }
  const droppedViewBody = { kind: 'view', name, sql: '', refreshSecs: 0, dropped: true } as const;
  return decideOne('drop-view', name, [{ context: context.entry, body: droppedViewBody }], next);
}

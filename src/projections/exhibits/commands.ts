/** The next link of an exhibit: numbered and sealed here, so that links of one turn follow each other. Pure. */
import { ServiceError } from '../../errors.ts';
import type { ExhibitBody } from '../../log/entries/entry.ts';
import type { NextPosition } from '../../log/log-store.ts';
import { checkIdentifier } from '../../log/values/value.ts';
import type { LinkExhibit } from '../command.ts';
import { type DecideContext, type Decision, decideOne } from '../decision.ts';
import type { Tenants } from '../tenants/projection.ts';
import type { Exhibits } from './projection.ts';
import { noSeal, sealOf, textHash } from './link-seal.ts';

export function decideLink(
  command: LinkExhibit,
  { exhibits, tenants }: Readonly<{ exhibits: Exhibits; tenants: Tenants }>,
  context: DecideContext,
  next: NextPosition,
): Decision {
  checkIdentifier(command.exhibit, 'an exhibit id');
  const { tenant } = context.entry;
  const knownExhibit = exhibits.exhibit(command.exhibit, tenant);
  // An exhibit left by an earlier tenant of the same id cannot be continued.
  const tenantSince = tenants.sinceOf(tenant)?.time ?? 0n;
  const exhibit = knownExhibit !== undefined && knownExhibit.links[0]!.time >= tenantSince ? knownExhibit : undefined;
  if (command.open && exhibit !== undefined) throw new ServiceError('REL_CONFLICT', 'an exhibit with this id exists');
  if (!command.open && exhibit === undefined) throw new ServiceError('REL_NOT_FOUND', 'no such exhibit');
  const lastLink = exhibit?.links.at(-1);
  const link = lastLink === undefined ? 0 : lastLink.link + 1;
  const previousSeal = lastLink?.seal ?? noSeal;
  const { act, recipe, stored = recipe, resultHash } = command;
  const seal = sealOf({ exhibit: command.exhibit, link, previousSeal, recipeHash: textHash(recipe), resultHash });
  const exhibitLinkBody: ExhibitBody = {
    kind: 'exhibit',
    exhibit: command.exhibit,
    link,
    act,
    recipe: stored,
    resultHash,
    previousSeal,
    seal,
  };
  // An exhibit belongs to the governance plane, which never forks: a recipe may name a branch, its link stands on main.
  return decideOne(
    'link-exhibit',
    command.exhibit,
    [{ context: { ...context.entry, branch: 'main' }, body: exhibitLinkBody }],
    next,
  );
}

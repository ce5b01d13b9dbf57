/** Adds an answer or words to an exhibit: runs the statement under the gate, seals its result, and appends the link. */
import { ServiceError } from '../../errors.ts';
import type { Invocation, PinnedGrant } from '../../governance/gate-contract.ts';
import { checkText } from '../../log/values/value.ts';
import type { ExhibitLink } from '../../projections/access-paths.ts';
import { textHash } from '../../projections/exhibits/link-seal.ts';
import type { PlannerContract } from '../planner-contract.ts';
import { checkDerivable, checkViewsDerivable, sourcesOf, typesOf } from './derivable.ts';
import { readingThrough } from './pinned-invocation.ts';
import { type Act, acts, grantOf, type Recipe, recipeText, wordsResult } from './recipe.ts';
import { resultDigest } from './result-digest.ts';

const linkWordsBytesMax = 64 * 1024;

export interface LinkRequest {
  readonly exhibit: string;
  /** The act, as the caller named it. */
  readonly act: string;
  readonly sql?: string;
  readonly text?: string;
  readonly purpose: string | null;
  readonly sync: boolean;
  readonly signal?: AbortSignal;
}

export interface LinkDependencies {
  readonly planner: PlannerContract;
  readonly engine: string;
  readonly yieldTurn: () => Promise<void>;
}

export interface Linked {
  readonly exhibit: string;
  readonly link: ExhibitLink;
  /** Instant of the rows that were read; for words, the instant at which they were added. */
  readonly basis: bigint;
  readonly rowCount: number | null;
}

/** Link 0: seals the title. */
export async function openExhibit(
  invocation: Invocation,
  { engine }: Pick<LinkDependencies, 'engine'>,
  { exhibit, sync, title }: Pick<LinkRequest, 'exhibit' | 'sync'> & { readonly title: string },
): Promise<Linked> {
  checkLinkWords(title, 'the title of an exhibit');
  return putWordsLink(invocation, { exhibit, open: true, act: 'open', text: title, sync, engine });
}

export async function linkExhibit(invocation: Invocation, dependencies: LinkDependencies, request: LinkRequest): Promise<Linked> {
  const { exhibit, sql, text, purpose, sync } = request;
  const { engine } = dependencies;
  const linkAct = acts.find((known) => known === request.act) satisfies Act | undefined;
  if (linkAct === undefined) throw new ServiceError('REL_INVALID', `act is one of ${acts.join(', ')}`);
  // A missing exhibit is reported before errors in the request.
  invocation.exhibits().exhibit(exhibit);
  if (linkAct !== 'query') {
    if (text === undefined || sql !== undefined) throw new ServiceError('REL_INVALID', `a ${linkAct} has a text and no sql`);
    checkLinkWords(text, `a ${linkAct}`);
    return putWordsLink(invocation, { exhibit, open: false, act: linkAct, text, sync, engine });
  }
  if (sql === undefined || text !== undefined) throw new ServiceError('REL_INVALID', 'a query has sql and no text');
  checkText(sql, 'the statement');
  checkDerivable(sql);
  const { signal } = request;
  // Reads as a replay will: with the column types of the basis, which nobody can change meanwhile.
  const exhibitDesk = invocation.exhibits();
  let pinnedGrant: PinnedGrant | undefined;
  const pinnedReading = readingThrough(invocation, {
    describe: (details) => invocation.describe(details),
    snapshot: () => {
      const now = invocation.snapshot();
      const pinned = exhibitDesk.pin((pinnedGrant = grantOf(now, exhibitDesk.policyDigest(now), sourcesOf(sql, now.views))));
      checkViewsDerivable(sql, pinned.views);
      exhibitDesk.checkReplay(typesOf(sql, pinned));
      return pinned;
    },
  });
  const exhibitAnswer = await dependencies.planner.query(pinnedReading, {
    sql,
    purpose,
    consistency: 'exact',
    ...(signal ? { signal } : {}),
  });
  if (pinnedGrant === undefined) throw new ServiceError('REL_INTERNAL', 'a query takes a snapshot');
  const linkRecipe = recipeText({ act: linkAct, statement: sql, grant: pinnedGrant, engine });
  const resultHash = await resultDigest(exhibitAnswer, dependencies.yieldTurn);
  return putLinkCommand(
    invocation,
    { exhibit, open: false, act: linkAct, recipe: linkRecipe, resultHash, sync },
    pinnedGrant.instant,
    exhibitAnswer.rowCount,
  );
}

interface LinkWords extends Pick<LinkRequest, 'exhibit' | 'sync'> {
  readonly open: boolean;
  readonly act: Recipe['act'];
  readonly text: string;
  readonly engine: string;
}

function putWordsLink(invocation: Invocation, words: LinkWords): Promise<Linked> {
  const { exhibit, open, act, text, sync, engine } = words;
  const currentSnapshot = invocation.snapshot();
  const wordsGrant = grantOf(currentSnapshot, invocation.exhibits().policyDigest(currentSnapshot));
  const wordsRecipe = recipeText({ act, text, grant: wordsGrant, engine });
  return putLinkCommand(
    invocation,
    { exhibit, open, act, recipe: wordsRecipe, resultHash: textHash(wordsResult(text)), sync },
    wordsGrant.instant,
    null,
  );
}

async function putLinkCommand(
  invocation: Invocation,
  linkCommand: { exhibit: string; open: boolean; act: string; recipe: string; resultHash: string; sync: boolean },
  basis: bigint,
  rowCount: number | null,
): Promise<Linked> {
  const { sync, ...command } = linkCommand;
  const { systemFrom } = await invocation.submit({ kind: 'link-exhibit', ...command }, { sync });
  // Others may have linked since: the entry's own instant tells which one is ours.
  const putLink = invocation
    .exhibits()
    .exhibit(command.exhibit)
    .links.findLast(({ time }) => time === systemFrom);
  if (putLink === undefined) throw new ServiceError('REL_INTERNAL', 'a link that was put is there');
  return { exhibit: command.exhibit, link: putLink, basis, rowCount };
}

function checkLinkWords(text: string, wordName: string): void {
  checkText(text, wordName);
  if (text.length === 0 || Buffer.byteLength(text) > linkWordsBytesMax) {
    throw new ServiceError('REL_INVALID', `${wordName} has 1 to ${linkWordsBytesMax} bytes`);
  }
}

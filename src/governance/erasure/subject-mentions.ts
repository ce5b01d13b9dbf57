/**
 * Entries that repeat a subject in texts of their own: recipes and notes of exhibits, queries of views, keys of removed rows, and
 * texts of open entries. The intent of the erasure lists their positions; from there on no caller sees them. Keys of texts that rest under
 * keys of their own are destroyed; other texts leave the log.
 */
import { isOpen } from '../../log/entries/entry.ts';
import { tenantOf } from '../../log/values/value.ts';
import type { LogStore } from '../../log/log-store.ts';
import type { ExhibitView } from '../../projections/access-paths.ts';
import type { SubjectNames, NameTest } from '../../projections/subject-names.ts';
import type { OpenEntry } from '../../projections/open-entries/projection.ts';
import { LettersInARow } from '../../projections/rows/cells/text-beginnings.ts';
import { textKeysOf } from '../../projections/sealed-definitions.ts';
import { textsOf } from './open-entry-texts.ts';
import type { KeyedTextSeals } from './text-seals.ts';

export interface Mentions {
  readonly positions: readonly number[];
  /** Ids of keys that recipes or definitions alone are sealed under. */
  readonly keys: readonly string[];
  /** Leaves of all links of exhibits, and of all open entries, that were looked at. */
  readonly links: ReadonlySet<number>;
}

export interface MentionDependencies {
  readonly log: Pick<LogStore, 'read'>;
  readonly exhibits: { all(): Iterable<ExhibitView> };
  readonly openEntries: { searchable(): Iterable<OpenEntry> };
  readonly views: {
    mentioning(names: NameTest, owns: TenantTest): readonly number[];
    keysOf(positions: readonly number[]): readonly string[];
  };
  readonly removedKeys: { mentioning(names: NameTest, owns: TenantTest): readonly number[] };
  readonly seals: Pick<KeyedTextSeals, 'open'>;
  readonly yieldTurn: () => Promise<void>;
}

/**
 * Texts that keys must occur in to be found by `mentionsOf`, besides `reason`; null: any key may be, since texts of exhibits are
 * read only once; so are those of open entries.
 */
export function keysIn(tenant: string | null, reason: string, textsHeld: MentioningTexts): LettersInARow | null {
  const { exhibits, openEntries, views, removedKeys } = textsHeld;
  const isOfTenant: TenantTest = (path) => tenantOf(path) === tenant;
  for (const { path } of openEntries.searchable()) if (isOfTenant(path)) return null;
  for (const { links } of exhibits.all()) if (links.some(({ path }) => isOfTenant(path))) return null;
  const reasonLetters = new LettersInARow(reason);
  const collectLetters: NameTest = {
    areIn: (text) => {
      reasonLetters.add(text);
      return false;
    },
  };
  views.mentioning(collectLetters, isOfTenant);
  removedKeys.mentioning(collectLetters, isOfTenant);
  return reasonLetters;
}

type MentioningTexts = Pick<MentionDependencies, 'exhibits' | 'openEntries' | 'views' | 'removedKeys'>;

/** Whether an organisation path belongs to the tenant: other tenants' texts are theirs. */
type TenantTest = (path: string | null) => boolean;

export async function mentionsOf(
  tenant: string | null,
  subjectNames: SubjectNames,
  parts: MentionDependencies,
): Promise<Mentions> {
  const { exhibits, openEntries, views, removedKeys, log, seals, yieldTurn } = parts;
  const isOfTenant: TenantTest = (path) => tenantOf(path) === tenant;
  const mentioningViews = views.mentioning(subjectNames, isOfTenant);
  const mentionPositions = new Set([...mentioningViews, ...removedKeys.mentioning(subjectNames, isOfTenant)]);
  const textKeyIds = [...views.keysOf(mentioningViews)];
  const linksSeen = new Set<number>();
  for (const { links } of exhibits.all()) {
    for (const { leaf, path } of links) {
      if (!isOfTenant(path)) continue;
      await yieldTurn();
      for await (const { body, position } of log.read(leaf)) {
        const openedRecipe = body.kind === 'exhibit' ? seals.open(body.recipe) : null;
        if (body.kind === 'exhibit' && openedRecipe !== null && subjectNames.areIn(openedRecipe)) {
          mentionPositions.add(position);
          textKeyIds.push(...textKeysOf(body));
        }
        linksSeen.add(leaf);
        break;
      }
    }
  }
  for (const { leaf, position, path } of openEntries.searchable()) {
    if (!isOfTenant(path)) continue;
    await yieldTurn();
    // The log does not read an entry that is not on disk yet: the scan will.
    for await (const { body } of log.read(leaf)) {
      if (isOpen(body) && subjectNames.areIn(textsOf(body, (text) => seals.open(text)))) {
        mentionPositions.add(position);
        textKeyIds.push(...textKeysOf(body));
      }
      linksSeen.add(leaf);
      break;
    }
  }
  return { positions: [...mentionPositions].sort((a, b) => a - b), keys: textKeyIds, links: linksSeen };
}

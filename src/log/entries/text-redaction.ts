/**
 * Bodies without the texts that repeat a subject's rows: the rest of an entry after an erasure. The statement of its leaf (see
 * `statement-root.ts`) still holds.
 *
 *   exhibit   recipe ''          its seal still commits to the recipe
 *   view      sql ''             nothing is read through it
 *   removal   keys []            the positions stay
 *   open      no bytes           its kind and position stay
 */
import { isEmbedded } from './embedded-vectors.ts';
import { type EntryBody, isOpen } from './entry.ts';

const blankContent = new Uint8Array(0);

/** Null for kinds that repeat nothing. */
export function blankOf(redactedBody: EntryBody): EntryBody | null {
  switch (redactedBody.kind) {
    case 'exhibit':
      return { ...redactedBody, recipe: '' };
    case 'view':
      return { ...redactedBody, sql: '' };
    case 'removal':
      return { ...redactedBody, keys: [] };
    default:
      return isOpen(redactedBody) ? { ...redactedBody, content: blankContent } : null;
  }
}

/** Whether nothing is left to drop. */
export function isBlank(redactedBody: EntryBody): boolean {
  switch (redactedBody.kind) {
    case 'exhibit':
      return redactedBody.recipe === '';
    case 'view':
      return redactedBody.sql === '';
    case 'removal':
      return redactedBody.keys.length === 0;
    default:
      return isOpen(redactedBody) && !isEmbedded(redactedBody.content) && redactedBody.content.length === 0;
  }
}

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

const noBytes = new Uint8Array(0);

/** Null for kinds that repeat nothing. */
export function blankOf(body: EntryBody): EntryBody | null {
  switch (body.kind) {
    case 'exhibit':
      return { ...body, recipe: '' };
    case 'view':
      return { ...body, sql: '' };
    case 'removal':
      return { ...body, keys: [] };
    default:
      return isOpen(body) ? { ...body, content: noBytes } : null;
  }
}

/** Whether nothing is left to drop. */
export function isBlank(body: EntryBody): boolean {
  switch (body.kind) {
    case 'exhibit':
      return body.recipe === '';
    case 'view':
      return body.sql === '';
    case 'removal':
      return body.keys.length === 0;
    default:
      return isOpen(body) && !isEmbedded(body.content) && body.content.length === 0;
  }
}

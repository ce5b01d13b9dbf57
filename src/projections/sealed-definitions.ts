/**
 * Definitions rest sealed inside their entries: the text of a rule, a job, a workflow, a statement that runs long, or a view lies under a
 * key of its own, which an erasure destroys that finds a subject in it. So it is gone from every backup as well, and what an entry says
 * outside of the seal still is what was defined when, ended or replaced.
 *
 *   rule, job, run   {"v": 2, …, "sealed": text}   the members that version 1 has beside these, as RFC 8785 JSON, sealed
 *   view             sql is the text, sealed       its name is outside, as names of types are
 *
 * Earlier releases wrote version 1, which has all members in the clear, and the queries of views as they are.
 */
import { assert } from '../errors.ts';
import type { EntryBody, OpenBody } from '../log/entries/entry.ts';
import { isOpen } from '../log/entries/entry.ts';
import { isSealedText, openText, sealedKeyOf } from '../log/keys/sealed-text.ts';
import type { SubjectKeys } from '../log/keys/subject-keys.ts';
import { canonicalJson, type Json } from '../log/values/canonical-json.ts';

export type SealText = (text: string) => string;
/** Null: erased. */
export type OpenText = (stored: string) => string | null;

type DefinitionMembers = Readonly<Record<string, Json>>;

export interface Definition {
  readonly members: DefinitionMembers;
  /** Only the members outside of the seal are left. */
  readonly isErased: boolean;
}

export function sealedContent(outsideMembers: DefinitionMembers, sealedMembers: DefinitionMembers, sealText: SealText): string {
  return canonicalJson({ ...outsideMembers, v: 2, sealed: sealText(canonicalJson(sealedMembers)) });
}

/** For what says nothing that anybody wrote. */
export function plainContent(members: DefinitionMembers): string {
  return canonicalJson({ ...members, v: 1 });
}

/** Null: the content was dropped, or has the form of another release. */
export function definitionIn({ content }: OpenBody, openSealedText: OpenText): Definition | null {
  if (typeof content !== 'string' || content === '') return null;
  const definitionMembers = definitionMembersOf(content);
  if (definitionMembers?.['v'] === 1) return { members: definitionMembers, isErased: false };
  const sealedText = sealedTextOfMembers(definitionMembers);
  if (definitionMembers === null || sealedText === null) return null;
  const openedText = openSealedText(sealedText);
  return openedText === null
    ? { members: definitionMembers, isErased: true }
    : { members: { ...definitionMembers, ...(JSON.parse(openedText) as DefinitionMembers) }, isErased: false };
}

/** The sealed text in the content of an entry of an open kind; null: it has none. */
export function sealedTextIn({ content }: OpenBody): string | null {
  return typeof content === 'string' && content !== '' ? sealedTextOfMembers(definitionMembersOf(content)) : null;
}

/** Ids of the keys that texts of an entry rest under, and that cover nothing else. */
export function textKeysOf(body: EntryBody): readonly string[] {
  if (body.kind === 'exhibit') return sealedKeyOf(body.recipe);
  if (body.kind === 'view') return sealedKeyOf(body.sql);
  return isOpen(body) ? sealedKeyOf(sealedTextIn(body) ?? '') : [];
}

/** Opens texts by these keys. Without keys only texts of earlier releases can be read: all that a checkpoint or a test may need. */
export function textOpener(subjectKeys: Pick<SubjectKeys, 'opening'> | undefined): OpenText {
  return (storedText) => {
    if (!isSealedText(storedText)) return storedText;
    assert(subjectKeys, 'sealed definitions are read where their keys are');
    return openText(storedText, subjectKeys);
  };
}

function definitionMembersOf(definitionContent: string): DefinitionMembers | null {
  const parsedContent = JSON.parse(definitionContent) as Json;
  return typeof parsedContent === 'object' && parsedContent !== null && !Array.isArray(parsedContent)
    ? (parsedContent as DefinitionMembers)
    : null;
}

function sealedTextOfMembers(members: DefinitionMembers | null): string | null {
  return members?.['v'] === 2 && typeof members['sealed'] === 'string' ? members['sealed'] : null;
}

/** add_case_note: a note in a case, which may also be a link of an exhibit. Source: specification, "Tool protocol (MCP)". */
import { z } from 'zod';
import { type ErrorCode, ServiceError } from '../../errors.ts';
import type { TypeDefinition } from '../../log/entries/entry.ts';
import { linkExhibit } from '../../planner/exhibits/link.ts';
import { rolePlayers, roles, unplayedMessage } from '../../planner/table-functions/domain/roles.ts';
import { putting, quote } from './verb-rows.ts';
import type { VerbCall } from './verb-call.ts';
import { nanosecondsOut, verb } from './verb.ts';

const caseNoteRole = roles.case_note;

interface CaseNote {
  readonly case_id: string;
  readonly text: string;
  readonly author?: string;
  readonly exhibit_id?: string;
}

export const addCaseNote = verb({
  name: 'add_case_note',
  description: 'Write a note into a case. With an exhibit, its text is put there as well, as a sealed link.',
  input: z.object({
    case_id: z.string().min(1).max(1_024).describe('_pk of the case'),
    text: z
      .string()
      .min(1)
      .max(1 << 16),
    author: z.string().min(1).max(1_024).optional().describe('who says so; the caller by default'),
    exhibit_id: z.string().min(1).max(1_024).optional().describe('an exhibit that the note belongs to'),
  }),
  output: z.object({
    note_id: z.string(),
    case_id: z.string(),
    exhibit_link: z.int().nullable().describe('number of the link in the exhibit'),
    system_from: nanosecondsOut,
  }),
  action: 'ingest',
  units: 1,
  purpose: 'required',
  bucket: 'write',
  tool: { title: 'Note in a case', readOnly: false },
  contents: ['text'],
  example: { case_id: 'a case', text: 'seen at the pier' },
  run: async (verbCall, { case_id: caseId, text: noteText, author: noteAuthor, exhibit_id: noteExhibit }) => {
    await requireCase(verbCall, caseId);
    const caseNoteId = verbCall.parts.ids.next();
    const noteWrite = caseNoteStep(verbCall, caseNoteId, {
      case_id: caseId,
      text: noteText,
      author: noteAuthor ?? verbCall.invocation.caller.principal,
      ...(noteExhibit !== undefined && { exhibit_id: noteExhibit }),
    });
    verbCall.note({ result: { note_id: caseNoteId } });
    let exhibitLink: number | null = null;
    if (noteExhibit !== undefined) {
      // A note that would be refused leaves no link.
      const [refusedNote] = (await verbCall.invocation.rehearse(noteWrite, new Set())).errors;
      if (refusedNote !== undefined) throw new ServiceError(refusedNote.code as ErrorCode, refusedNote.detail);
      const { planner: exhibitPlanner, system, yieldTurn } = verbCall.parts;
      const exhibitRequest = { exhibit: noteExhibit, act: 'note', text: noteText, purpose: verbCall.purpose, sync: false };
      ({ link: exhibitLink } = (
        await linkExhibit(verbCall.invocation, { planner: exhibitPlanner, engine: system.version, yieldTurn }, exhibitRequest)
      ).link);
    }
    const { systemFrom: noteSystemFrom } = await verbCall.commit([noteWrite]);
    return { note_id: caseNoteId, case_id: caseId, exhibit_link: exhibitLink, system_from: noteSystemFrom };
  },
});

async function requireCase(verbCall: VerbCall, caseId: string): Promise<void> {
  const caseTypes = rolePlayers(readableCaseTypes(verbCall), 'case');
  if (caseTypes.length === 0) throw new ServiceError('REL_UNKNOWN_TYPE', unplayedMessage('case'));
  for (const { type: caseType } of caseTypes) {
    const caseRows = await verbCall.ask(`SELECT _pk FROM ${quote(caseType)} WHERE _pk = $1`, [caseId]);
    if (caseRows.length > 0) return;
  }
  throw new ServiceError('REL_NOT_FOUND', `there is no case ${JSON.stringify(caseId)}`);
}

/** A row of the first type that plays the role; of the default type, which the first note registers, where none does. */
function caseNoteStep(verbCall: VerbCall, caseNoteId: string, caseNote: CaseNote) {
  const [noteType] = rolePlayers(readableCaseTypes(verbCall), caseNoteRole.name);
  const { catalog: typeCatalog } = verbCall.snapshot;
  if (noteType === undefined && typeCatalog.type(caseNoteRole.defaultType) !== undefined)
    throw new ServiceError('REL_UNKNOWN_TYPE', unplayedMessage('case_note'));
  const noteDefinition: TypeDefinition = typeCatalog.type(noteType?.type ?? '') ?? {
    name: caseNoteRole.defaultType,
    properties: {},
    open: true,
    primaryKey: null,
    graphTriggers: [],
    ontologyVersion: 0,
  };
  const noteRow: Record<string, unknown> = { [noteDefinition.primaryKey ?? '_pk']: caseNoteId };
  for (const [noteField, noteCell] of Object.entries(caseNote)) {
    const noteColumn = noteType?.columns.get(noteField) ?? (noteDefinition.open ? noteField : undefined);
    if (noteColumn === undefined && noteField === 'exhibit_id')
      throw new ServiceError('REL_INVALID', `exhibit_id: the type ${JSON.stringify(noteDefinition.name)} has no column for it`);
    if (noteColumn !== undefined) noteRow[noteColumn] = noteCell;
  }
  return putting({
    definition: noteDefinition,
    rows: [noteRow],
    provenance: verbCall.provenance(),
    createType: noteType === undefined,
  });
}

function readableCaseTypes({ snapshot: verbSnapshot }: VerbCall): readonly TypeDefinition[] {
  return verbSnapshot.catalog.types().filter(({ name: typeName }) => verbSnapshot.offers(typeName));
}

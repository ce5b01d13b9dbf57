/** add_case_note: a note in a case, which may also be a link of an exhibit. Source: specification, "Tool protocol (MCP)". */
import { z } from 'zod';
import { type ErrorCode, ServiceError } from '../../errors.ts';
import type { TypeDefinition } from '../../log/entries/entry.ts';
import { linkExhibit } from '../../planner/exhibits/link.ts';
import { rolePlayers, roles, unplayedMessage } from '../../planner/table-functions/domain/roles.ts';
import { putting, quote } from './verb-rows.ts';
import type { VerbCall } from './verb-call.ts';
import { nanosecondsOut, verb } from './verb.ts';

const noteRole = roles.case_note;

interface Note {
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
  run: async (verbCall, { case_id: id, text, author, exhibit_id: exhibit }) => {
    await checkCase(verbCall, id);
    const note = verbCall.parts.ids.next();
    const step = noteStep(verbCall, note, {
      case_id: id,
      text,
      author: author ?? verbCall.invocation.caller.principal,
      ...(exhibit !== undefined && { exhibit_id: exhibit }),
    });
    verbCall.note({ result: { note_id: note } });
    let link: number | null = null;
    if (exhibit !== undefined) {
      // A note that would be refused leaves no link.
      const [refused] = (await verbCall.invocation.rehearse(step, new Set())).errors;
      if (refused !== undefined) throw new ServiceError(refused.code as ErrorCode, refused.detail);
      const { planner, system, yieldTurn } = verbCall.parts;
      const request = { exhibit, act: 'note', text, purpose: verbCall.purpose, sync: false };
      ({ link } = (await linkExhibit(verbCall.invocation, { planner, engine: system.version, yieldTurn }, request)).link);
    }
    const { systemFrom } = await verbCall.commit([step]);
    return { note_id: note, case_id: id, exhibit_link: link, system_from: systemFrom };
  },
});

async function checkCase(verbCall: VerbCall, id: string): Promise<void> {
  const cases = rolePlayers(readable(verbCall), 'case');
  if (cases.length === 0) throw new ServiceError('REL_UNKNOWN_TYPE', unplayedMessage('case'));
  for (const { type } of cases) {
    const rows = await verbCall.ask(`SELECT _pk FROM ${quote(type)} WHERE _pk = $1`, [id]);
    if (rows.length > 0) return;
  }
  throw new ServiceError('REL_NOT_FOUND', `there is no case ${JSON.stringify(id)}`);
}

/** A row of the first type that plays the role; of the default type, which the first note registers, where none does. */
function noteStep(verbCall: VerbCall, id: string, note: Note) {
  const [player] = rolePlayers(readable(verbCall), noteRole.name);
  const { catalog } = verbCall.snapshot;
  if (player === undefined && catalog.type(noteRole.defaultType) !== undefined)
    throw new ServiceError('REL_UNKNOWN_TYPE', unplayedMessage('case_note'));
  const definition: TypeDefinition = catalog.type(player?.type ?? '') ?? {
    name: noteRole.defaultType,
    properties: {},
    open: true,
    primaryKey: null,
    graphTriggers: [],
    ontologyVersion: 0,
  };
  const row: Record<string, unknown> = { [definition.primaryKey ?? '_pk']: id };
  for (const [name, cell] of Object.entries(note)) {
    const column = player?.columns.get(name) ?? (definition.open ? name : undefined);
    if (column === undefined && name === 'exhibit_id')
      throw new ServiceError('REL_INVALID', `exhibit_id: the type ${JSON.stringify(definition.name)} has no column for it`);
    if (column !== undefined) row[column] = cell;
  }
  return putting({ definition, rows: [row], provenance: verbCall.provenance(), createType: player === undefined });
}

function readable({ snapshot }: VerbCall): readonly TypeDefinition[] {
  return snapshot.catalog.types().filter(({ name }) => snapshot.offers(name));
}

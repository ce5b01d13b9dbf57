/**
 * Recall of generated conversations, as an agent would ask it, beside plain BM25 over the same rows at the same instant: how many
 * answers are among the first five. No model is asked.
 */
import { callVerb } from '../../src/doors/verbs/call-verb.ts';
import { verbs } from '../../src/doors/verbs/all.ts';
import { readDocument } from '../../src/doors/rich-text/chunks.ts';
import type { VerbDependencies } from '../../src/doors/verbs/verb-call.ts';
import { analyst, TestStore } from '../harness.ts';
import { conversations, type Question, type QuestionKind } from './conversations.ts';

const depth = 5;

export interface MemoryFigures {
  readonly questions: number;
  /** Shares of questions that are answered among the first five. */
  readonly recall: number;
  readonly bm25: number;
  readonly byKind: Readonly<Record<QuestionKind, { readonly questions: number; readonly recall: number; readonly bm25: number }>>;
}

const caller = { ...analyst, path: 'acme', tenant: 'acme' };

export async function recallMeasured(half: 1 | 2, seed: number): Promise<MemoryFigures> {
  const { turns, questions } = conversations(half, seed);
  const store = await TestStore.open('2023-01-01');
  try {
    const { service } = store;
    const parts = {
      planner: service.planner,
      clock: service.clock,
      ids: service.ids,
      jobs: service.automation.jobs,
      schedule: service.automation.jobDesk,
      workflows: service.automation.workflows,
      yieldTurn: service.turns.yieldFor('bodies'),
      system: { version: 'test' } as VerbDependencies['system'],
      metrics: { registry: { metrics: async () => '' } },
      embedder: null,
      translator: null,
      readDocuments: readDocument,
    };
    const call = async (name: string, input: object): Promise<Record<string, unknown>> => {
      const verb = verbs.find((each) => each.name === name)!;
      return (await callVerb(service.gate, parts, { verb, input, caller, purpose: 'test', correlationId: 'q' })).output as Record<
        string,
        unknown
      >;
    };
    const ids = new Map<string, string>();
    for (const { id, at, session, text, corrects } of turns) {
      store.clock.set(`${at}T12:00:00Z`);
      if (corrects === undefined) {
        ids.set(id, (await call('remember', { content: text, session_id: session }))['id'] as string);
      } else {
        ids.set(id, (await call('consolidate', { id: ids.get(corrects), content: text }))['new_id'] as string);
      }
    }
    store.clock.set('2024-06-01');
    const hits = { recall: 0, bm25: 0 };
    const byKind = Object.fromEntries(
      (['fact', 'corrected', 'time'] as const).map((kind) => [kind, { questions: 0, recall: 0, bm25: 0 }]),
    ) as Record<QuestionKind, { questions: number; recall: number; bm25: number }>;
    for (const { kind, text, turn, at } of questions) {
      const wanted = ids.get(turn)!;
      const { memories } = await call('recall', { query: text, top_k: depth, ...(at !== undefined && { as_of: at }) });
      const found = (memories as { id: string }[]).some(({ id }) => id === wanted);
      const plain = (await bm25(store, text, at)).includes(wanted);
      const own = byKind[kind];
      own.questions++;
      for (const sum of [hits, own]) {
        sum.recall += Number(found);
        sum.bm25 += Number(plain);
      }
    }
    for (const own of Object.values(byKind)) {
      own.recall /= own.questions;
      own.bm25 /= own.questions;
    }
    return { questions: questions.length, recall: hits.recall / questions.length, bm25: hits.bm25 / questions.length, byKind };
  } finally {
    await store.close();
  }
}

/** Both axes at the instant that the question is about, as recall has them. */
async function bm25(store: TestStore, text: string, at: Question['at']): Promise<readonly string[]> {
  const quotedText = text.replaceAll("'", "''");
  const [clock, held] =
    at === undefined ? ['AS OF CURRENT', ''] : [`AS OF SYSTEM TIME '${at}'`, `AND valid_from <= '${at}' AND valid_to > '${at}'`];
  const sql = `SELECT _pk FROM MemoryItem ${clock} WHERE MATCH(content, '${quotedText}') ${held} ORDER BY _score DESC LIMIT ${depth}`;
  return (await store.column(sql, caller)).map(String);
}

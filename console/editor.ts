/** The statement's editor: CodeMirror with the words of our dialect. Loaded when a statement is first shown. */
import { autocompletion, closeBrackets, completionKeymap } from '@codemirror/autocomplete';
import { defaultKeymap, history, historyKeymap } from '@codemirror/commands';
import { bracketMatching, HighlightStyle, syntaxHighlighting } from '@codemirror/language';
import { sql, SQLDialect, type SQLNamespace } from '@codemirror/lang-sql';
import { Compartment, EditorState } from '@codemirror/state';
import { EditorView, keymap, lineNumbers } from '@codemirror/view';
import { tags } from '@lezer/highlight';

const dialect = SQLDialect.define({
  keywords:
    'select from where and or not in exists is null between like ilike as of system time current order by asc desc limit after group having with provenance purpose explain analyze policy rank recency compute facets join left right full cross on using union intersect except all distinct case when then else end cast values watch branch true false match phrase suffix infix interval tumble hop session collate unicode for',
  types: 'string integer number boolean timestamp json vector',
  builtin:
    'count sum avg min max median abs round trunc floor ceil lower upper length trim substring replace contains starts_with ends_with date_trunc extract greatest least nullif now current_timestamp highlight neighbors shortest_path pagerank hybrid_search recall',
});

const colours = HighlightStyle.define([
  { tag: tags.keyword, color: 'var(--accent)', fontWeight: '600' },
  { tag: [tags.string, tags.special(tags.string)], color: 'var(--warm)' },
  { tag: tags.number, color: 'var(--warm)' },
  { tag: tags.comment, color: 'var(--faint)', fontStyle: 'italic' },
]);

const look = EditorView.theme({
  '&': { fontSize: '13px' },
  '&.cm-focused': { outline: 'none' },
  '.cm-content': { fontFamily: 'var(--mono)', padding: '8px 0', caretColor: 'var(--ink)' },
  '.cm-cursor': { borderLeftColor: 'var(--ink)' },
  '.cm-gutters': { background: 'none', border: 'none', color: 'var(--faint)' },
  '.cm-tooltip': { background: 'var(--raised)', border: '1px solid var(--line)', borderRadius: '6px' },
  '.cm-tooltip-autocomplete ul li[aria-selected]': { background: 'var(--accent-soft)', color: 'var(--ink)' },
  '.cm-scroller': { maxHeight: '34vh', overflow: 'auto' },
  '&.cm-focused .cm-selectionBackground, .cm-selectionBackground': { background: 'var(--accent-soft) !important' },
});

export interface Editor {
  set(text: string): void;
  complete(schema: SQLNamespace): void;
  moveTo(line: number, column: number): void;
  focus(): void;
  destroy(): void;
}

export function openEditor(parent: HTMLElement, text: string, onChange: (text: string) => void, onRun: () => void): Editor {
  const language = new Compartment();
  const run = (): boolean => {
    onRun();
    return true;
  };
  // Styles of a shadow tree are objects; those of a document would be elements, which the page's policy refuses.
  const root = parent.attachShadow({ mode: 'open' });
  const view = new EditorView({
    parent: root,
    root,
    state: EditorState.create({
      doc: text,
      extensions: [
        keymap.of([{ key: 'Mod-Enter', run, preventDefault: true }, ...completionKeymap, ...defaultKeymap, ...historyKeymap]),
        history(),
        lineNumbers(),
        bracketMatching(),
        closeBrackets(),
        autocompletion({ activateOnTypingDelay: 60 }),
        language.of(sql({ dialect })),
        syntaxHighlighting(colours),
        look,
        EditorView.lineWrapping,
        EditorView.contentAttributes.of({ 'aria-label': 'statement' }),
        EditorView.updateListener.of((update) => {
          if (update.docChanged) onChange(update.state.doc.toString());
        }),
      ],
    }),
  });
  return {
    set(next) {
      if (next !== view.state.doc.toString()) view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: next } });
    },
    complete(schema) {
      view.dispatch({ effects: language.reconfigure(sql({ dialect, schema, upperCaseKeywords: true })) });
    },
    moveTo(line, column) {
      const { doc } = view.state;
      const at = doc.line(Math.min(doc.lines, Math.max(1, line)));
      view.dispatch({ selection: { anchor: Math.min(at.to, at.from + Math.max(0, column - 1)) }, scrollIntoView: true });
      view.focus();
    },
    focus: () => view.focus(),
    destroy: () => view.destroy(),
  };
}

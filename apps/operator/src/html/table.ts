import { html, type Html } from './html';

/** The heading of a column of figures, which stand on the right. */
export const ofFigures = (text: string): Html => html`<th scope="col" class="number">${text}</th>`;

/**
 * A table. It is wider than a phone, so it needs an element around it that scrolls.
 *
 * @param columns headings: texts, or whole cells
 * @param rows an element `tr` for each
 */
export const tableOf = (columns: readonly (string | Html)[], rows: readonly Html[]): Html =>
  html`<table>
    <thead>
      <tr>
        ${columns.map((column) => (typeof column === 'string' ? html`<th scope="col">${column}</th>` : column))}
      </tr>
    </thead>
    <tbody>
      ${rows}
    </tbody>
  </table>`;

import { table } from './table.mjs';

const code = (text) => `\`${text}\``;
const list = (names) => names.map(code).join(', ');

/** Described by hand, above the rest. */
const REQUIRED = ['x-api-key', 'message_id'];

/** The first sentence: the page at /docs/messages has them all. */
const inShort = (text) => text.replace(/(?<=\.) .*/s, '');

const nameOf = ({ $ref }) => $ref.slice($ref.lastIndexOf('/') + 1);

/** The fields that a body has, those inside others left out. */
const fieldsOf = (document, schema) => Object.keys(document.components.schemas[nameOf(schema)].properties);

/** Every command and query. */
export function operationsTable(document) {
  const { operations, components } = document;
  return table(
    ['Operation', 'Kind', 'Purpose', 'Body', 'Body of the reply'],
    Object.values(operations)
      .filter(({ reply }) => reply)
      .map(({ title, tags: [, kind], summary }) => [
        code(title),
        kind.name,
        inShort(summary),
        list(fieldsOf(document, components.messages[title].payload)),
        list(fieldsOf(document, components.messages[`${title}.reply`].payload)),
      ]),
  );
}

/** Every event. */
export function eventsTable(document) {
  const events = Object.values(document.operations).filter(({ tags }) => tags.some(({ name }) => name === 'event'));
  return table(
    ['Type', 'When', '`data`'],
    events.map(({ title, summary }) => {
      const { data } = document.components.messages[title].payload.properties;
      return [code(title), summary, list(fieldsOf(document, data.allOf[0]))];
    }),
  );
}

/** Optional properties and headers of a command. */
export function optionalTable({ components: { schemas } }) {
  const row =
    (prefix) =>
    ([name, { const: value, description }]) => [
      `${prefix}${code(name)}`,
      value === undefined ? description : `${code(String(value))}: ${description}`,
    ];
  const optional = ({ properties }) => Object.entries(properties).filter(([name]) => !REQUIRED.includes(name));
  return table(
    ['Part', 'Value'],
    [...optional(schemas.CommandProperties).map(row('')), ...optional(schemas.CommandHeaders).map(row('header '))],
  );
}

/** Headers of a dead letter, beside those of the command. */
export function deadLettersTable({ components: { schemas } }) {
  return table(
    ['Header', 'Meaning'],
    Object.entries(schemas.DeadLetterHeaders.properties).map(([name, { description }]) => [code(name), description]),
  );
}

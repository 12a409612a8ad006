import { code, table } from './table.mjs';

/** @param {string[]} names */
const list = (names) => names.map(code).join(', ');

/** @typedef {{ $ref: string }} Reference */
/** @typedef {{ const?: unknown, description: string, allOf?: any }} Property */
/** @typedef {{ properties: Record<string, Property> }} Schema */
/** @typedef {{ title: string, summary: string, reply?: object, tags: { name: string }[] }} Operation */

/**
 * The parts of asyncapi.json that are read.
 * @typedef {object} Document
 * @property {Record<string, Operation>} operations
 * @property {{ schemas: Record<string, Schema>, messages: Record<string, { payload: Reference }> }} components
 */

/** Written by hand, above the rest. */
const REQUIRED = ['x-api-key', 'message_id'];

/**
 * The first sentence: the page at /docs/messages has them all.
 * @param {string} text
 */
export const firstSentence = (text) => text.replace(/(?<=\.) .*/s, '');

/** @param {Reference} options */
const nameOf = ({ $ref }) => $ref.slice($ref.lastIndexOf('/') + 1);

/**
 * The fields that a body has, those inside others left out.
 * @param {Document} document
 * @param {Reference} schema
 */
const fieldsOf = (document, schema) => Object.keys(document.components.schemas[nameOf(schema)].properties);

/**
 * Every command and query.
 * @param {Document} document
 */
export function operationsTable(document) {
  const { operations, components } = document;
  return table(
    ['Operation', 'Kind', 'Purpose', 'Body', 'Body of the reply'],
    Object.values(operations)
      .filter(({ reply }) => reply)
      .map(({ title, tags: [, kind], summary }) => [
        code(title),
        kind.name,
        firstSentence(summary),
        list(fieldsOf(document, components.messages[title].payload)),
        list(fieldsOf(document, components.messages[`${title}.reply`].payload)),
      ]),
  );
}

/**
 * Every event.
 * @param {Document} document
 */
export function eventsTable(document) {
  const events = Object.values(document.operations).filter(({ tags }) => tags.some(({ name }) => name === 'event'));
  return table(
    ['Type', 'When', '`data`'],
    events.map(({ title, summary }) => {
      const { messages, schemas } = document.components;
      const { data } = schemas[nameOf(messages[title].payload)].properties;
      return [code(title), summary, list(fieldsOf(document, data.allOf[0]))];
    }),
  );
}

/**
 * Optional properties and headers of a command.
 * @param {Document} options
 */
export function optionalTable({ components: { schemas } }) {
  /** @param {string} prefix */
  const row =
    (prefix) =>
    (/** @type {[string, Property]} */ [name, { const: value, description }]) => [
      `${prefix}${code(name)}`,
      value === undefined ? description : `${code(String(value))}: ${description}`,
    ];
  /** @param {Schema} options */
  const optional = ({ properties }) => Object.entries(properties).filter(([name]) => !REQUIRED.includes(name));
  return table(
    ['Part', 'Value'],
    [...optional(schemas.CommandProperties).map(row('')), ...optional(schemas.CommandHeaders).map(row('header '))],
  );
}

/**
 * Headers of a dead letter, beside those of the command.
 * @param {Document} options
 */
export function deadLettersTable({ components: { schemas } }) {
  return table(
    ['Header', 'Meaning'],
    Object.entries(schemas.DeadLetterHeaders.properties).map(([name, { description }]) => [code(name), description]),
  );
}

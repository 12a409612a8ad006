import { stringify } from 'yaml';
import { SERVICES, built } from '../checkout/project.mjs';

const CLUSTER = { rabbitmqClusterReference: { name: 'rabbitmq' } };

/**
 * The broker accounts of the services and their rights as objects of the Messaging Topology Operator, from the list by which set-up creates
 * them. Accounts of other services are made with `npm run accounts`.
 */
export function accountManifests() {
  /** @type {typeof import('../../libs/rabbitmq-admin/src/accounts/rights.ts')} */
  const { RIGHTS, topicRights } = built('libs/rabbitmq-admin/src/accounts/rights.js');
  const objects = Object.entries(RIGHTS)
    .filter(([account]) => SERVICES.includes(account))
    .flatMap(([account, rights]) => {
      const { configure, write, read } = rights;
      const whose = { ...CLUSTER, vhost: '/', userReference: { name: account } };
      return [
        object('User', account, { ...CLUSTER, importCredentialsSecret: { name: `${account}-broker` } }),
        ...topicRights(rights).map(({ exchange, ...permissions }) =>
          object('TopicPermission', `${account}.${exchange}`, { ...whose, permissions: { exchange, ...permissions } }),
        ),
        object('Permission', account, { ...whose, permissions: { configure, write, read } }),
      ];
    });
  const head = '# Written by npm run manifests from libs/rabbitmq-admin/src/accounts/rights.ts.\n';
  return head + objects.map((one) => stringify(one, { lineWidth: 0 })).join('---\n');
}

/** @param {string} kind @param {string} name @param {object} spec */
const object = (kind, name, spec) => ({ apiVersion: 'rabbitmq.com/v1beta1', kind, metadata: { name }, spec });

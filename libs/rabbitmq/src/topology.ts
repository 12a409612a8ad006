export interface Topology {}

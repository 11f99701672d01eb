// Charts to begin with.
import * as m from '#messages/explore';

interface Start {
  address: string;
  title: () => string;
  text: () => string;
}

export const STARTS: readonly Start[] = [
  { address: '/explore?s=cpu_percent&top=5', title: m.startCpu, text: m.startCpuText },
  { address: '/explore?s=memory_used&fn=sum&by=none', title: m.startMemory, text: m.startMemoryText },
  { address: '/explore?s=disk_percent:*&by=series&rank=last', title: m.startDisks, text: m.startDisksText },
  { address: '/explore?s=container_cpu:*&by=series', title: m.startContainers, text: m.startContainersText },
  { address: '/explore?s=load_1&by=tag', title: m.startTags, text: m.startTagsText },
];

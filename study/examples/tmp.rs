fn main() {
    let args: Vec<String> = std::env::args().collect();
    let mut record = weft_study::record::Record::open(args[1].as_ref()).unwrap();
    println!("{:#?}", record.end());
    let header = record.header().clone();
    for i in 0..record.steps() { let s = record.step(i).unwrap(); println!("step {} tasks {} counts {:?} measured {:?} products {} rounds {} looks {} rows {} off {:.3}", s.number, s.tasks.len(), s.counts(), s.measured.map(|m| (m/1e3) as u64), s.products, s.rounds, s.looks, s.rows.len(), s.price_error); }
    let prices = record.end().prices;
    for p in [1usize, 2, 4, 8, 16, 32] {
        for name in ["static", "paper", "every-other", "half", "adaptive", "last-victim", "lifelines"] {
            let layout = weft_study::layout::Layout::new(&header, p).unwrap();
            let machine = weft_study::replay::Machine { network: weft_runtime::comm::virtual_time::Network::MYRINET_2000, policy: weft_runtime::Policy::by_name(name).unwrap(), seed: 0, collide_only: false, trace: None };
            let mut skew = vec![]; let mut sum = [0u64; 6]; let mut heavy = 0; let mut comp = [0u64; 5]; let mut b = [0.0; 3];
            for i in 0..record.steps() {
                let step = record.step(i).unwrap();
                let (t, _) = weft_study::replay::replay(&header, &layout, &step, &prices, &machine, &skew).unwrap();
                for k in 0..5 { sum[k] += t.phases[k]; comp[k] += t.computed[k]; } sum[5] += t.whole; heavy += t.heaviest; skew = t.skew;
                let bb = weft_study::bounds::bounds(&header, &layout, &step, &prices, (&machine.policy, &machine.network)); b[0]+=bb.work; b[1]+=bb.longest; b[2]+=bb.latency;
            }
            let n = record.steps() as u64;
            println!("{p:>3} {name:>12} {:?} heavy {} comp {:?} bounds {:?}", sum.map(|s| s / n / 1000), heavy / n / 1000, comp.map(|c| c / n / 1000), b.map(|x| (x / n as f64 / 1000.0) as u64));
        }
    }
}

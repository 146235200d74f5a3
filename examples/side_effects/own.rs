//! Made-up conversations in the shape of recorded ones, for those who do not have the corpus.

use serde_json::{Value, json};

use crate::{
    calls::{Conversation, Source, Turn, Write},
    requests::Request,
};

/// How often the storm sends its one request.
const STORM: usize = 94;

/// Five conversations, each with one way to do a thing twice.
pub fn source() -> Source {
    Source {
        name: "made-up",
        recorded: false,
        conversations: vec![storm(), balance(), asked_again(), undone(), forgotten()],
    }
}

fn storm() -> Conversation {
    let change = json!({ "reservation_id": "Q7MZ2K", "cabin": "economy", "payment_id": "credit_card_1190",
        "flights": [{ "flight_number": "KS210", "date": "2026-03-14", "origin": "OSL", "destination": "AMS", "price": 120 },
                    { "flight_number": "KS377", "date": "2026-03-14", "origin": "AMS", "destination": "LIS", "price": 95 }] });
    let bags = json!({ "reservation_id": "Q7MZ2K", "total_baggages": 2, "nonfree_baggages": 1,
        "payment_id": "credit_card_1190" });
    let mut turns = begin("Please put me on the flights of the 14th.");
    turns.extend([customer_read("ida_holm_2210", "credit_card_1190: unlimited"), reservation_read("Q7MZ2K", "open")]);
    turns.extend((0..STORM).map(|_| write("update_reservation_flights", &change)));
    turns.push(said("And one more bag, please."));
    turns.push(write("update_reservation_baggages", &bags));
    made("storm", turns, &["Q7MZ2K"])
}

/// The same failing change three times, then the cause is gone.
fn balance() -> Conversation {
    let change = json!({ "reservation_id": "T4RW8D", "cabin": "business", "payment_id": "gift_card_5512",
        "flights": [{ "flight_number": "KS018", "date": "2026-04-02", "price": 140 }] });
    let bags = |reservation: &str| json!({ "reservation_id": reservation, "total_baggages": 1, "nonfree_baggages": 0, "payment_id": "gift_card_5512" });
    let mut turns = begin("Business class for T4RW8D, from my gift card.");
    turns.extend([
        reservation_read("T4RW8D", "economy"),
        customer_read("noor_vik_7701", "gift_card_5512: 40"),
        write("update_reservation_flights", &change),
        write("update_reservation_flights", &change),
        // Read again, and it says the same.
        customer_read("noor_vik_7701", "gift_card_5512: 40"),
        write("update_reservation_flights", &change),
        Turn::TopUp("gift_card_5512".to_owned(), 300.0),
        said("I topped it up, try again."),
        customer_read("noor_vik_7701", "gift_card_5512: 300"),
        write("update_reservation_flights", &change),
        said("And a bag."),
        // Mistyped, then corrected: another request.
        write("update_reservation_baggages", &bags("T4RWBD")),
        write("update_reservation_baggages", &bags("T4RW8D")),
    ]);
    made("balance", turns, &["T4RW8D"])
}

/// Twice because the customer wants it twice, and a third time because the agent forgot.
fn asked_again() -> Conversation {
    let certificate = json!({ "user_id": "liv_aas_3021", "amount": 50 });
    let mut turns = begin("My flight was delayed.");
    turns.extend([
        customer_read("liv_aas_3021", "silver member"),
        write("send_certificate", &certificate),
        said("And my flight back was late as well: the same for that one."),
        write_again("send_certificate", &certificate, "a second delayed flight"),
    ]);
    turns.extend(searches(9));
    turns.extend([said("When will it arrive?"), write("send_certificate", &certificate)]);
    made("asked again", turns, &[])
}

/// Booked, cancelled, and booked again; then booked once more because the agent forgot.
fn undone() -> Conversation {
    let book = json!({ "user_id": "omar_lund_8844", "origin": "OSL", "destination": "LIS", "flight_type": "one_way",
        "cabin": "economy", "flights": [{ "flight_number": "KS377", "date": "2026-05-01" }],
        "passengers": [{ "first_name": "Omar", "last_name": "Lund", "dob": "1988-02-03" }],
        "payment_methods": [{ "payment_id": "credit_card_6604", "amount": 230 }],
        "total_baggages": 0, "nonfree_baggages": 0, "insurance": "no" });
    let bags = json!({ "reservation_id": "KEEP01", "total_baggages": 1, "nonfree_baggages": 0,
        "payment_id": "credit_card_6604" });
    let booked = |name: &str| match write("book_reservation", &book) {
        Turn::Write(write) => Turn::Write(Write { made: Some(name.to_owned()), ..write }),
        turn => turn,
    };
    let mut turns = begin("One seat to Lisbon on the 1st.");
    turns.extend([
        customer_read("omar_lund_8844", "credit_card_6604: unlimited"),
        booked("KEEP01"),
        said("With a bag, please."),
        write("update_reservation_baggages", &bags),
        said("Sorry, I must stay at home. Cancel it."),
        write("cancel_reservation", &json!({ "reservation_id": "KEEP01" })),
        said("Good news: I can go after all. Book the same again."),
        booked("KEEP02"),
    ]);
    turns.extend(searches(9));
    turns.extend([said("So am I booked?"), booked("KEEP03")]);
    made("undone", turns, &[])
}

/// Long reads between a write and the same write again.
fn forgotten() -> Conversation {
    let names = json!({ "reservation_id": "B2XK9F",
        "passengers": [{ "first_name": "Eli", "last_name": "Moe", "dob": "1971-11-30" }] });
    let bags = json!({ "reservation_id": "B2XK9F", "total_baggages": 3, "nonfree_baggages": 2,
        "payment_id": "credit_card_4410" });
    let cancel = json!({ "reservation_id": "N5PD1C" });
    let transfer =
        json!({ "summary": "Eli Moe asks for a wheelchair in Madrid; B2XK9F is up to date, N5PD1C is cancelled." });
    let calls = [
        ("update_reservation_passengers", &names),
        ("update_reservation_baggages", &bags),
        ("cancel_reservation", &cancel),
        ("transfer_to_human_agents", &transfer),
    ];
    let mut turns = begin("New name and two more bags for B2XK9F, cancel N5PD1C, and I need a wheelchair in Madrid.");
    turns.extend([
        customer_read("eli_moe_5190", "credit_card_4410: unlimited"),
        reservation_read("B2XK9F", "open"),
        reservation_read("N5PD1C", "open"),
    ]);
    for _ in 0..3 {
        turns.extend(calls.iter().map(|(tool, arguments)| write(tool, arguments)));
        turns.extend(searches(9));
    }
    made("forgotten", turns, &["B2XK9F", "N5PD1C"])
}

fn made(name: &str, turns: Vec<Turn>, reservations: &[&str]) -> Conversation {
    Conversation {
        name: name.to_owned(),
        turns,
        reservations: reservations.iter().map(|reservation| (*reservation).to_owned()).collect(),
        balances: vec![("gift_card_5512".to_owned(), 40.0)],
        rejections: Vec::new(),
    }
}

fn begin(wish: &str) -> Vec<Turn> {
    let rules = "You are at the desk of an airline. Read the customer and the reservation before you change anything, and \
                 say what you did.";
    vec![Turn::System(rules.to_owned()), said(wish)]
}

fn said(text: &str) -> Turn {
    Turn::Customer(text.to_owned())
}

fn customer_read(customer: &str, says: &str) -> Turn {
    let text = json!({ "user_id": customer, "says": says }).to_string();
    Turn::Read { tool: "get_user_details".to_owned(), of: customer.to_owned(), text }
}

fn reservation_read(reservation: &str, says: &str) -> Turn {
    let text = json!({ "reservation_id": reservation, "says": says }).to_string();
    Turn::Read { tool: "get_reservation_details".to_owned(), of: reservation.to_owned(), text }
}

/// Long results that push out what came before.
fn searches(count: usize) -> impl Iterator<Item = Turn> {
    (0..count).map(|day| {
        let flight = |hour: u32| {
            json!({ "flight_number": format!("KS{hour:03}"), "date": format!("2026-06-{day:02}"),
            "departs": format!("{hour:02}:15"), "economy": 110_u32.saturating_add(hour), "seats": 9 })
        };
        let text = json!((0..24).map(flight).collect::<Vec<_>>()).to_string();
        Turn::Read { tool: "search_direct_flight".to_owned(), of: format!("day {day}"), text }
    })
}

fn write(tool: &str, arguments: &Value) -> Turn {
    let request = Request { tool: tool.to_owned(), arguments: arguments.clone() };
    Turn::Write(Write { request, again: None, made: None })
}

fn write_again(tool: &str, arguments: &Value, why: &str) -> Turn {
    match write(tool, arguments) {
        Turn::Write(write) => Turn::Write(Write { again: Some(why.to_owned()), ..write }),
        turn => turn,
    }
}

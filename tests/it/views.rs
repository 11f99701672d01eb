//! `/views` and `/dashboards`: saved charts of series, and pages of them.

use serde_json::{Value, json};

use crate::support::rest::Call;
use crate::support::site::Site;
use crate::support::{keys_of, text_of};

fn get(site: &Site, path: &str) -> Call {
    site.service.client.get(path).bearer(&site.owner.token)
}

fn post(site: &Site, path: &str) -> Call {
    site.service.client.post(path).bearer(&site.owner.token)
}

fn put(site: &Site, path: &str) -> Call {
    site.service.client.put(path).bearer(&site.owner.token)
}

fn delete(site: &Site, path: &str) -> Call {
    site.service.client.delete(path).bearer(&site.owner.token)
}

fn definition() -> Value {
    json!({
        "version": 1, "series": ["cpu_percent", "disk_percent:*", "disk_percent:/mnt/a,b"], "tag": "web", "function": "max",
        "by": "series", "top": 5,
    })
}

async fn view(site: &Site, name: &str) -> Value {
    post(site, "/views").json(json!({"name": name, "definition": definition()})).expect(201).await
}

#[actix_web::test]
async fn a_view_is_saved_with_all_its_fields() {
    let site = Site::start().await;

    let made = view(&site, "Fullest disks").await;

    let keys =
        ["created_at", "definition", "description", "hidden_servers", "id", "mine", "name", "owner", "shared_with"];
    assert_eq!(keys_of(&made), [keys.as_slice(), &["updated_at"]].concat());
    assert_eq!(
        (&made["mine"], &made["shared_with"], &made["hidden_servers"]),
        (&json!(true), &json!("nobody"), &json!(0))
    );
    assert_eq!(made["owner"], json!({"id": site.owner.id, "username": site.owner.username}));
    let whole = json!({
        "version": 1, "series": ["cpu_percent", "disk_percent:*", "disk_percent:/mnt/a,b"], "servers": [], "tag": "web",
        "function": "max", "by": "series", "top": 5, "rank": "max", "range": "24h", "start": null, "end": null,
        "events": true,
    });
    assert_eq!(made["definition"], whole);
    assert_eq!(site.read(&format!("/views/{}", text_of(&made["id"]))).await, made);
    // What the service returns can be saved as it is.
    let again = json!({"name": "Copy", "definition": whole});
    assert_eq!(post(&site, "/views").json(again).expect(201).await["definition"], made["definition"]);
}

#[actix_web::test]
async fn views_are_listed_by_name_changed_and_deleted() {
    let site = Site::start().await;
    let (second, first) = (view(&site, "b").await, view(&site, "a").await);
    let path = format!("/views/{}", text_of(&second["id"]));
    let names = |list: &Value| list.as_array().unwrap().iter().map(|one| text_of(&one["name"])).collect::<Vec<_>>();

    assert_eq!(names(&site.read("/views").await), ["a", "b"]);
    let range =
        json!({"version": 1, "series": ["load_1"], "start": "2026-11-20T10:00:00Z", "end": "2026-11-20T11:00:00Z"});
    let changed = put(&site, &path).json(json!({"name": "c", "definition": range})).expect(200).await;
    assert_eq!(changed["definition"]["range"], Value::Null);
    assert!(text_of(&changed["definition"]["start"]).starts_with("2026-11-20T10:00:00"), "{changed}");
    delete(&site, &path).expect(200).await;
    delete(&site, &path).expect(404).await;
    assert_eq!(names(&site.read("/views").await), ["a"]);

    let entries = site.read("/audit?action=view.").await;
    let actions: Vec<String> = entries.as_array().unwrap().iter().map(|entry| text_of(&entry["action"])).collect();
    assert_eq!(actions, ["view.delete", "view.update", "view.create", "view.create"]);
    assert_eq!(entries[1]["detail"]["definition"], "replaced");
    assert_eq!(entries[2]["target"], first["id"]);
}

#[actix_web::test]
async fn the_known_fields_of_definitions_are_checked() {
    let site = Site::start().await;
    let nine: Vec<String> = (0..9).map(|number| format!("series_{number}")).collect();
    let faulty = [
        (json!({"version": 2, "series": ["a"]}), ("body", "definition.version", "value_error.number.not_le")),
        (json!({"version": 1}), ("body", "definition.series", "value_error.missing")),
        (json!({"version": 1, "series": []}), ("body", "definition.series", "value_error.list.min_items")),
        (json!({"version": 1, "series": nine}), ("body", "definition.series", "value_error.list.max_items")),
        (json!({"version": 1, "series": ["a,b"]}), ("body", "definition.series.0", "value_error.series")),
        (json!({"version": 1, "series": ["a,b:c"]}), ("body", "definition.series.0", "value_error.series")),
        (json!({"version": 1, "series": ["a"], "by": "rack"}), ("body", "definition.by", "type_error.enum")),
        (json!({"version": 1, "series": ["a"], "range": "2 d"}), ("body", "definition.range", "value_error.range")),
        (json!({"version": 1, "series": ["a"], "range": "9s"}), ("body", "definition.range", "value_error.range")),
        (json!({"version": 1, "series": ["a"], "range": "6y"}), ("body", "definition.range", "value_error.range")),
        (
            json!({"version": 1, "series": ["a"], "start": "2026-11-20T10:00:00Z"}),
            ("body", "definition.end", "value_error.missing"),
        ),
        (
            json!({"version": 1, "series": ["a"], "start": "2026-11-20T10:00:00Z", "end": "2026-11-20T10:00:00Z"}),
            ("body", "definition.end", "value_error.range"),
        ),
    ];

    for (definition, fault) in faulty {
        let body = json!({"name": "x", "definition": definition});
        post(&site, "/views").json(body).expect_faults(422, &[fault]).await;
    }
    assert_eq!(site.read("/views").await, json!([]));
}

#[actix_web::test]
async fn a_range_that_somebody_typed_is_kept_as_it_is() {
    let site = Site::start().await;
    let of_two_days = json!({"version": 1, "series": ["a"], "range": "2d"});

    let view = post(&site, "/views").json(json!({"name": "x", "definition": of_two_days})).expect(201).await;
    let layout = json!({"version": 1, "panels": [], "range": "3w"});
    let dashboard = post(&site, "/dashboards").json(json!({"name": "x", "layout": layout})).expect(201).await;

    assert_eq!(view["definition"]["range"], "2d");
    assert_eq!(dashboard["layout"]["range"], "3w");
}

#[actix_web::test]
async fn unknown_fields_of_definitions_and_layouts_are_not_saved() {
    let site = Site::start().await;
    let definition = json!({"version": 1, "series": ["a"], "colour": "red"});

    let view = post(&site, "/views").json(json!({"name": "x", "definition": definition})).expect(201).await;
    let layout = json!({"version": 1, "theme": "dark", "panels": [{"view_id": view["id"], "depth": 3}]});
    let dashboard = post(&site, "/dashboards").json(json!({"name": "x", "layout": layout})).expect(201).await;

    assert_eq!(view["definition"]["series"], json!(["a"]));
    assert!(view["definition"].get("colour").is_none(), "{view}");
    assert!(dashboard["layout"].get("theme").is_none(), "{dashboard}");
    assert!(dashboard["layout"]["panels"][0].get("depth").is_none(), "{dashboard}");
}

#[actix_web::test]
async fn a_dashboard_keeps_its_views_in_order() {
    let site = Site::start().await;
    let (one, two) = (view(&site, "one").await, view(&site, "two").await);
    let panels = json!([{"view_id": two["id"], "width": 12, "height": 2}, {"view_id": one["id"]}]);

    let empty = post(&site, "/dashboards").json(json!({"name": "Morning"})).expect(201).await;
    assert_eq!(empty["layout"], json!({"version": 1, "panels": [], "range": null}));
    let path = format!("/dashboards/{}", text_of(&empty["id"]));
    let body = json!({"layout": {"version": 1, "panels": panels, "range": "7d"}});
    put(&site, &path).json(body).expect(200).await;

    let shown = site.read(&path).await;
    let whole = json!([
        {"view_id": two["id"], "width": 12, "height": 2}, {"view_id": one["id"], "width": 6, "height": 1},
    ]);
    assert_eq!(shown["layout"], json!({"version": 1, "panels": whole, "range": "7d"}));
    assert_eq!(site.read("/dashboards").await.as_array().unwrap().len(), 1);
    // A dashboard is no view, and outlives its views.
    get(&site, &format!("/views/{}", text_of(&empty["id"]))).expect(404).await;
    delete(&site, &format!("/views/{}", text_of(&two["id"]))).expect(200).await;
    assert_eq!(site.read(&path).await["layout"]["panels"], whole);
    let wide = json!({"layout": {"version": 1, "panels": [{"view_id": one["id"], "width": 13}]}});
    let fault = ("body", "layout.panels.0.width", "value_error.number.not_le");
    put(&site, &path).json(wide).expect_faults(422, &[fault]).await;
    delete(&site, &path).expect(200).await;
    get(&site, &path).expect(404).await;
}

#[actix_web::test]
async fn nobody_sees_what_others_saved() {
    let site = Site::start().await;
    let own = view(&site, "Mine").await;
    let board = post(&site, "/dashboards").json(json!({"name": "Mine"})).expect(201).await;
    let stranger = site.service.register("stranger").await;
    let client = &site.service.client;

    for path in [format!("/views/{}", text_of(&own["id"])), format!("/dashboards/{}", text_of(&board["id"]))] {
        client.get(&path).bearer(&stranger.token).expect(404).await;
        client.put(&path).bearer(&stranger.token).json(json!({"name": "Theirs"})).expect(404).await;
        client.delete(&path).bearer(&stranger.token).expect(404).await;
        client.get(&path).expect(401).await;
    }
    for path in ["/views", "/dashboards"] {
        assert_eq!(client.get(path).bearer(&stranger.token).expect(200).await, json!([]));
    }
    assert_eq!(site.read("/views").await[0]["name"], "Mine");
}

/// The site's owner is the first account and so an administrator; the others are ordinary users.
#[actix_web::test]
async fn what_is_shared_with_everyone_is_read_by_everyone_and_changed_by_its_owner() {
    let site = Site::start().await;
    let ada = site.service.register("ada").await;
    let client = &site.service.client;
    let made = client.post("/views").bearer(&ada.token);
    let made =
        made.json(json!({"name": "Disks", "definition": definition(), "shared_with": "everyone"})).expect(201).await;
    let layout = json!({"version": 1, "panels": [{"view_id": made["id"]}]});
    let board = client.post("/dashboards").bearer(&ada.token);
    let board = board.json(json!({"name": "Board", "layout": layout, "shared_with": "everyone"})).expect(201).await;

    let shown = site.read(&format!("/views/{}", text_of(&made["id"]))).await;
    assert_eq!(shown["owner"], json!({"id": ada.id, "username": "ada"}));
    assert_eq!((&shown["mine"], &shown["definition"]), (&json!(false), &made["definition"]));
    assert_eq!(site.read("/views").await, json!([shown]));
    let shown = site.read("/dashboards").await[0].clone();
    assert_eq!((&shown["mine"], &shown["layout"]), (&json!(false), &board["layout"]));
    for path in [format!("/views/{}", text_of(&made["id"])), format!("/dashboards/{}", text_of(&board["id"]))] {
        put(&site, &path).json(json!({"name": "Mine now"})).expect_error(403, "forbidden").await;
        delete(&site, &path).expect_error(403, "forbidden").await;
        client.put(&path).bearer(&ada.token).json(json!({"shared_with": "nobody"})).expect(200).await;
        get(&site, &path).expect(404).await;
        put(&site, &path).json(json!({"name": "Mine now"})).expect_error(404, "not_found").await;
        delete(&site, &path).expect_error(404, "not_found").await;
    }
    assert_eq!(site.read("/views").await, json!([]));
    let entries = client.get("/audit?action=view.").bearer(&ada.token).expect(200).await;
    assert_eq!(entries[0]["detail"]["shared_with"], json!({"from": "everyone", "to": "nobody"}));
    assert_eq!(entries[1]["detail"], json!({"name": "Disks", "shared_with": "everyone"}));
}

#[actix_web::test]
async fn what_is_shared_with_administrators_does_not_exist_for_users() {
    let site = Site::start().await;
    let (ada, bob) = (site.service.register("ada").await, site.service.register("bob").await);
    let client = &site.service.client;
    let body = json!({"name": "Costs", "definition": definition(), "shared_with": "administrators"});
    let made = client.post("/views").bearer(&ada.token).json(body).expect(201).await;
    let path = format!("/views/{}", text_of(&made["id"]));

    assert_eq!(site.read(&path).await["shared_with"], "administrators");
    client.get(&path).bearer(&bob.token).expect_error(404, "not_found").await;
    client.put(&path).bearer(&bob.token).json(json!({"name": "x"})).expect_error(404, "not_found").await;
    client.delete(&path).bearer(&bob.token).expect_error(404, "not_found").await;
    assert_eq!(client.get("/views").bearer(&bob.token).expect(200).await, json!([]));
    let fault = ("body", "shared_with", "type_error.enum");
    let wrong = json!({"shared_with": "friends"});
    client.put(&path).bearer(&ada.token).json(wrong).expect_faults(422, &[fault]).await;
}

#[actix_web::test]
async fn ids_of_servers_stay_with_those_who_see_the_servers() {
    let site = Site::start().await;
    let ada = site.service.register("ada").await;
    let hers = site.service.server(&ada, "hers").await;
    let client = &site.service.client;
    let both = json!({"version": 1, "series": ["cpu_percent"], "servers": [hers, site.server_id]});
    let body = json!({"name": "Both", "definition": both, "shared_with": "everyone"});

    let made = client.post("/views").bearer(&ada.token).json(body).expect(201).await;

    assert_eq!((&made["definition"]["servers"], &made["hidden_servers"]), (&json!([hers, site.server_id]), &json!(0)));
    for shown in [site.read(&format!("/views/{}", text_of(&made["id"]))).await, site.read("/views").await[0].clone()] {
        assert_eq!((&shown["definition"]["servers"], &shown["hidden_servers"]), (&json!([site.server_id]), &json!(1)));
    }
}
